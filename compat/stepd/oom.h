/* SPDX-License-Identifier: MIT */
/* Tasks of a step that the kernel kills for lack of memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number of processes of the caller's cgroup that the kernel has killed for lack of memory; 0 if
 * unknown. */
uint64_t oom_kills(void);

/* True if the end of a task, as from waitpid(2), was caused by such a kill: of the task, or of a process that
 * it waited for. Each kill accounts for one task; `seen` counts them, and is initialised from oom_kills(). */
bool oom_is_end(int status, uint64_t *seen);
