/* SPDX-License-Identifier: MIT */
/* Processes of the agent as events of its loop: the end of one is a readable pidfd. */
#pragma once

#include <event2/event.h>
#include <sys/types.h>

struct child;

/* `status` is the raw wait status, 0 for a process that is not our child. The child is freed afterwards. */
typedef void child_ended_fn(void *arg, int status);

/* Watches a process; takes the pidfd over. It is reaped when it is ours. */
struct child *child_watch(struct event_base *base, int pidfd, child_ended_fn *on_end, void *arg);

/* Forks; in the child, only standard error and `keep_fd` (none: -1), as descriptor 3, stay open, no signal is
 * blocked or ignored but SIGPIPE, and 0 is returned. In the parent the pid, or a negative errno, is returned
 * and *ret_pidfd is the caller's.
 */
pid_t child_fork(int keep_fd, int *ret_pidfd);
#define CHILD_FD 3

int child_pidfd(const struct child *child);

/* Forgets the process, which lives on. NULL is fine. */
void child_free(struct child *child);
