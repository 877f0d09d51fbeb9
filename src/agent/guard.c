/* SPDX-License-Identifier: MIT */
/*
 * An agent that starts while its predecessor is still exiting must wait for the lock, and must notice if its
 * link closes meanwhile. Waiting for a lock blocks, so a thread does it. The thread ends before any other
 * part of the agent begins, so the agent is single-threaded when it forks helpers.
 */
#include "agent/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

struct guard {
    int lock_fd, event_fd;
    struct event *event;
    pthread_t thread;
    bool is_waiting; // the thread exists
    guard_taken_fn *on_taken;
    void *arg;
};

static void *wait_for_lock(void *arg)
{
    struct guard *guard = arg;
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    while (fcntl(guard->lock_fd, F_OFD_SETLKW, &lock) < 0 && errno == EINTR)
        ;
    (void)eventfd_write(guard->event_fd, 1);
    return NULL;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct guard *guard = arg;
    (void)pthread_join(guard->thread, NULL);
    guard->is_waiting = false;
    guard->on_taken(guard->arg);
}

static int start_waiting(struct guard *guard, struct event_base *base, struct error *err)
{
    guard->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (guard->event_fd < 0)
        return error_set_errno(err, -errno, "cannot create an event descriptor");
    int r = -pthread_create(&guard->thread, NULL, wait_for_lock, guard);
    if (r < 0)
        return error_set_errno(err, r, "cannot start the thread that waits for the lock");
    guard->is_waiting = true;
    guard->event = event_new(base, guard->event_fd, EV_READ, on_event, guard);
    (void)event_add(guard->event, NULL);
    return 0;
}

int guard_open(struct event_base *base, int dirfd, const char *name, guard_taken_fn *on_taken, void *arg,
    struct guard **ret, bool *ret_is_taken, struct error *err)
{
    struct guard *guard = xcalloc(1, sizeof(*guard));
    guard->on_taken = on_taken;
    guard->arg = arg;
    guard->event_fd = -1;
    guard->lock_fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = guard->lock_fd < 0 ? -errno : lock_file(guard->lock_fd);
    if (r < 0 && r != -EAGAIN)
        (void)error_set_errno(err, r, "cannot lock %s", name);
    *ret_is_taken = r == 0;
    if (r == -EAGAIN)
        r = start_waiting(guard, base, err);
    if (r < 0) {
        guard_close(guard);
        return r;
    }
    *ret = guard;
    return 0;
}

void guard_close(struct guard *guard)
{
    if (guard == NULL)
        return;
    if (guard->is_waiting) {
        (void)pthread_cancel(guard->thread); // F_OFD_SETLKW is a cancellation point
        (void)pthread_join(guard->thread, NULL);
    }
    if (guard->event != NULL)
        event_free(guard->event);
    closep(&guard->event_fd);
    closep(&guard->lock_fd);
    free(guard);
}
