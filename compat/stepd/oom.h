/* SPDX-License-Identifier: MIT */
/* Tasks of a step that the kernel kills for lack of memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Processes of the caller's cgroup that the kernel has killed for lack of memory; 0 if that is unknown. */
uint64_t oom_kills(void);

/* True if the end of a task, as from waitpid(2), came of such a kill: of the task, or of a process that it
 * waited for. Each kill accounts for one task; `seen` counts them, and begins with oom_kills(). */
bool oom_is_end(int status, uint64_t *seen);
