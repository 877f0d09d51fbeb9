/* SPDX-License-Identifier: MIT */
/* Generates the shell text that runs a script of the jobs file: GPU numbers in its arguments, and GNU Screen
 * around it. */
#pragma once

#include "base/strings.h"

/* The value of --cuda. */
enum feed_inject {
    FEED_INJECT_PHYSICAL, // the machine's numbers; CUDA_VISIBLE_DEVICES is unset
    FEED_INJECT_LOCAL,    // 0, 1, ...: CUDA_VISIBLE_DEVICES is kept
    FEED_INJECT_NEVER,    // arguments are not changed
};

#define FEED_MODE_VARIABLE "GPU_SCHEDULER_MODE" // in the environment of a job with a screen session

/* The text for sh. `python` is the interpreter; `mode` is NULL without screen. The caller frees it. */
char *feed_command_make(const char *python, const char *script, const struct strings *arguments,
    enum feed_inject inject, const char *mode);

/* The value of --mode as used in a session's name, or "run". The caller frees it. */
char *feed_command_mode(const struct strings *arguments);
