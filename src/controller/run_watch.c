/* SPDX-License-Identifier: MIT */
/*
 * A socket whose name was removed still listens, without any error. New commands would find no mgpud, and the
 * agent would have no spool for new jobs. Restarting mgpud creates both again, so mgpud ends itself for a
 * restart.
 */
#include "controller/run_watch.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"

#define SOCKET_NAME   "mgpud.sock"
#define EVERY_SECONDS 2

struct run_watch {
    char *path;
    dev_t device;
    ino_t inode;
    struct event *timer;
    run_watch_gone_fn *gone;
    void *arg;
};

static bool is_there(const struct run_watch *watch)
{
    struct stat st;
    if (stat(watch->path, &st) < 0)
        return errno != ENOENT && errno != ENOTDIR; // any other error proves nothing
    return st.st_dev == watch->device && st.st_ino == watch->inode;
}

static void on_time(evutil_socket_t fd, short events, void *arg)
{
    struct run_watch *watch = arg;
    if (is_there(watch))
        return;
    _cleanup_free_ char *sentence =
        xasprintf("%s was removed or replaced: no command can reach this mgpud", watch->path);
    (void)event_del(watch->timer);
    watch->gone(watch->arg, sentence);
}

struct run_watch *run_watch_new(
    struct event_base *loop, const char *run_dir, run_watch_gone_fn *gone, void *arg, struct error *err)
{
    struct run_watch *watch = xcalloc(1, sizeof(*watch));
    struct stat st;
    *watch = (struct run_watch){ .path = xasprintf("%s/" SOCKET_NAME, run_dir), .gone = gone, .arg = arg };
    if (stat(watch->path, &st) < 0) {
        (void)error_set_errno(err, -errno, "cannot find %s", watch->path);
        run_watch_free(watch);
        return NULL;
    }
    watch->device = st.st_dev;
    watch->inode = st.st_ino;
    watch->timer = event_new(loop, -1, EV_PERSIST, on_time, watch);
    (void)event_add(watch->timer, &(struct timeval){ .tv_sec = EVERY_SECONDS });
    return watch;
}

void run_watch_free(struct run_watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->timer != NULL)
        event_free(watch->timer);
    free(watch->path);
    free(watch);
}
