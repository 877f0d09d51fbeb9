/* SPDX-License-Identifier: MIT */
/* Child processes as events of the loop: a pidfd becomes readable at the end of a process. */
#pragma once

#include <event2/event.h>
#include <sys/types.h>

struct child;

/* `status` is the raw wait status, 0 for a process that is not a child. The struct is freed afterwards. */
typedef void child_ended_fn(void *arg, int status);

/* Watches a process; takes ownership of the pidfd, or of another descriptor that becomes readable when the
 * process has ended its work. Reaps the process if it is a child. */
struct child *child_watch(struct event_base *base, int pidfd, child_ended_fn *on_end, void *arg);

/* Forks. In the child, returns 0; only standard error and `keep_fd` (none: -1), as descriptor 3, are open,
 * and no signal is blocked or ignored except SIGPIPE. In the parent, returns the pid or a negative errno; the
 * caller owns *ret_pidfd. */
pid_t child_fork(int keep_fd, int *ret_pidfd);
#define CHILD_FD 3

int child_pidfd(const struct child *child);

/* Stops watching; the process continues. NULL is allowed. */
void child_free(struct child *child);
