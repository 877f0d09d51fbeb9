/* SPDX-License-Identifier: MIT */
/* Root's daemons are spared when memory is short, and may come first on a CPU. What they start for a user
 * must not inherit that. */
#pragma once

/* Gives up all of these: default scheduling, default priority, and the process's own OOM score. No effect
 * without root, because only root can have them. 0 or a negative errno. Async-signal-safe. */
int favours_give_up(void);

/* The part about /proc/PID/oom_score_adj, opened for reading and writing. A score above zero was set by
 * whoever runs this container, and stays: less is not ours to ask for. */
int favours_reset_score(int fd);
