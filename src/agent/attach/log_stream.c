/* SPDX-License-Identifier: MIT */
#include "agent/attach/log_stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attach/log_reader.h"
#include "agent/host/child.h"
#include "agent/host/child_list.h"
#include "agent/host/helper_rights.h"
#include "base/log.h"
#include "base/memory.h"

struct log_streams {
    char *link_path;
    const struct job_users *users;
    struct child_list *children;
};

/* A stream above the limit gets its own child to report that, up to twice the limit. */
void log_streams_open(struct log_streams *streams, const struct message_open_log *request)
{
    int pidfd;
    size_t count = child_list_count(streams->children);
    size_t of_user = child_list_count_of(streams->children, request->uid);
    bool is_too_many = count >= LOG_STREAMS_MAX || of_user >= LOG_STREAMS_USER_MAX;
    if (count >= 2 * LOG_STREAMS_MAX || of_user >= 2 * LOG_STREAMS_USER_MAX)
        return; // the controller's wait for the stream times out
    pid_t pid = child_fork(-1, &pidfd);
    if (pid == 0) {
        helper_enter(HELPER_LOG);
        _exit(log_reader_dial(streams->link_path, streams->users, request, is_too_many));
    }
    if (pid < 0)
        log_warning("cannot start a process to read %s: %s", request->path, strerror(-pid));
    else
        child_list_add(streams->children, pidfd, request->uid);
}

struct log_streams *log_streams_new(
    struct event_base *base, const char *link_path, const struct job_users *users)
{
    struct log_streams *streams = xcalloc(1, sizeof(*streams));
    streams->link_path = xstrdup(link_path);
    streams->users = users;
    streams->children = child_list_new(base);
    return streams;
}

void log_streams_free(struct log_streams *streams)
{
    if (streams == NULL)
        return;
    child_list_free(streams->children);
    free(streams->link_path);
    free(streams);
}
