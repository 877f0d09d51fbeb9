/* SPDX-License-Identifier: MIT */
#include "agent/attach/log_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/attach/log_reader.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sandbox.h"

struct stream {
    struct log_streams *streams;
    struct child *child;
    struct stream *next, **where; // the list, and the pointer to this entry
};

struct log_streams {
    struct event_base *base;
    char *link_path;
    const struct job_users *users;
    struct stream *list;
    size_t count;
};

static void stream_free(struct stream *stream)
{
    *stream->where = stream->next;
    if (stream->next != NULL)
        stream->next->where = stream->where;
    stream->streams->count--;
    child_free(stream->child);
    free(stream);
}

static void on_child_end(void *arg, int status)
{
    struct stream *stream = arg;
    stream->child = NULL;
    stream_free(stream);
}

static void stream_add(struct log_streams *streams, int pidfd)
{
    struct stream *stream = xcalloc(1, sizeof(*stream));
    stream->streams = streams;
    stream->where = &streams->list;
    stream->next = streams->list;
    if (stream->next != NULL)
        stream->next->where = &stream->next;
    streams->list = stream;
    streams->count++;
    stream->child = child_watch(streams->base, pidfd, on_child_end, stream);
}

/* A stream above the limit gets its own child to report that, up to twice the limit. */
void log_streams_open(struct log_streams *streams, const struct message_open_log *request)
{
    int pidfd;
    bool is_too_many = streams->count >= LOG_STREAMS_MAX;
    if (streams->count >= 2 * LOG_STREAMS_MAX)
        return; // the controller's wait for the stream ends by its own time-out
    pid_t pid = child_fork(-1, &pidfd);
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, "mgpu-log");
        (void)sandbox_enter(false, &(struct error){ 0 });
        _exit(log_reader_dial(streams->link_path, streams->users, request, is_too_many));
    }
    if (pid < 0)
        log_warning("cannot start a process to read %s: %s", request->path, strerror(-pid));
    else
        stream_add(streams, pidfd);
}

struct log_streams *log_streams_new(
    struct event_base *base, const char *link_path, const struct job_users *users)
{
    struct log_streams *streams = xcalloc(1, sizeof(*streams));
    streams->base = base;
    streams->link_path = xstrdup(link_path);
    streams->users = users;
    return streams;
}

void log_streams_free(struct log_streams *streams)
{
    if (streams == NULL)
        return;
    while (streams->list != NULL)
        stream_free(streams->list);
    free(streams->link_path);
    free(streams);
}
