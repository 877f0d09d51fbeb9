/* SPDX-License-Identifier: MIT */
/* Detects changes of the jobs file and the state file with inotify. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/memory.h"
#include "compat/feed/feed.h"

#define FILE_CHANGES (IN_CLOSE_WRITE | IN_MOVED_TO)

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The directory is watched, because editors replace files by new ones. */
static int watch_folder(struct feed *feed, const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder =
        slash == NULL ? xstrdup(".") : xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
    int watch = path[0] == '\0' ? -1 : inotify_add_watch(feed->inotify_fd, folder, FILE_CHANGES);
    if (watch < 0 && path[0] != '\0')
        feed_log_say(&feed->log, "%s is only checked periodically: %s", path, strerror(errno));
    return watch;
}

static void on_change(struct feed *feed, const struct inotify_event *event)
{
    const struct feed_settings *settings = feed->settings;
    const char *name = event->len > 0 ? event->name : "";
    if ((event->mask & IN_Q_OVERFLOW) != 0)
        feed->read_ms = feed->sync_ms = 0;
    if (event->wd == feed->jobs_watch && strcmp(name, base_name(settings->jobs_path)) == 0)
        feed->read_ms = 0;
    if (event->wd == feed->state_watch && strcmp(name, base_name(settings->state_path)) == 0)
        feed->sync_ms = 0;
}

void feed_watch_read(struct feed *feed)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(feed->inotify_fd, bytes, sizeof(bytes));
    for (char *p = bytes; n > 0 && p < bytes + n;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)p;
        on_change(feed, event);
        p += sizeof(*event) + event->len;
    }
}

int feed_watch_open(struct feed *feed, struct error *err)
{
    feed->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (feed->inotify_fd < 0)
        return error_set_errno(err, -errno, "cannot watch files");
    feed->jobs_watch = watch_folder(feed, feed->settings->jobs_path);
    feed->state_watch = watch_folder(feed, feed->settings->state_path);
    return 0;
}

void feed_watch_close(struct feed *feed)
{
    (void)close(feed->inotify_fd);
    feed->inotify_fd = -1;
}
