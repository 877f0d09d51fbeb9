/* SPDX-License-Identifier: MIT */
/* What is tried in a child process, because it changes the process that does it. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* `pid` is the result of fork(); its child exits with 0 or an errno. Returns 0, or a negative errno with a
 * sentence in `err`, which begins with `what` ("cannot mount ...") where it is the child's. */
int probe_wait(pid_t pid, const char *what, struct error *err);
