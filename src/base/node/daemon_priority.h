/* SPDX-License-Identifier: MIT */
/* Root's daemons are exempt from the OOM killer and may have a higher CPU priority. The processes that they
 * start for a user must not inherit that. */
#pragma once

/* Gives up all of these: default scheduling, default priority, and the process's own OOM score. No effect
 * without root, because only root can have them. 0 or a negative errno. Async-signal-safe. */
int daemon_priority_drop(void);

/* Resets /proc/PID/oom_score_adj, opened for reading and writing. A score above zero stays: whoever runs this
 * container has set it, and mgpu must not lower it. */
int daemon_priority_reset_oom_score(int fd);
