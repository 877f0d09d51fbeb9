/* SPDX-License-Identifier: MIT */
/* Feature tests that run in a child process, because they change the process that runs them. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* `pid` is the result of fork(); the child exits with 0 or an errno. Returns 0, or a negative errno with a
 * sentence in `err`; for an errno of the child, it begins with `what` ("cannot mount ..."). */
int probe_wait(pid_t pid, const char *what, struct error *err);
