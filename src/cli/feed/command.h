/* SPDX-License-Identifier: MIT */
/* The shell text that runs a script of the jobs file: GPU numbers in its arguments, and GNU Screen around it.
 */
#pragma once

#include "base/strings.h"

/* Which numbers --cuda gets. */
enum feed_inject {
    FEED_INJECT_PHYSICAL, // those of the machine, for which CUDA_VISIBLE_DEVICES goes
    FEED_INJECT_LOCAL,    // 0, 1, ...: CUDA_VISIBLE_DEVICES stays
    FEED_INJECT_NEVER,    // the arguments are left as they are
};

#define FEED_MODE_VARIABLE "GPU_SCHEDULER_MODE" // in the environment of a job with a session of screen

/* The text for sh. `python` is the interpreter; `mode` is NULL for a job without screen. The caller frees it.
 */
char *feed_command_make(const char *python, const char *script, const struct strings *arguments,
    enum feed_inject inject, const char *mode);

/* The value of --mode as it stands in a session's name, or "run". The caller frees it. */
char *feed_command_mode(const struct strings *arguments);
