/* SPDX-License-Identifier: MIT */
/*
 * The child takes only the port from the message. The job's owner and cgroup are read from the spool, after
 * the token has confirmed that this is the attempt the controller means.
 *
 *   dial the controller ──> find the attempt ──> enter its cgroup ──> become its user ──> connect
 *       STREAM, with the error if one of these has failed ──> bytes until both sides have ended,
 *                                                              or the job's init has
 */
#include "agent/attach/port_streams.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attach/job_entry.h"
#include "agent/attach/port_connect.h"
#include "agent/attach/terminal_visit.h"
#include "agent/host/child.h"
#include "agent/host/child_list.h"
#include "agent/host/helper_rights.h"
#include "base/bridge.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"

#define USER_NONE UINT64_MAX // the job has ended; the child reports that

struct port_streams {
    const struct launcher *launcher;
    const char *link_path;
    const struct job_users *users;
    struct child_list *children;
};

/* --- in the child --- */

/* Afterwards this process belongs to the job. Returns a connected socket. */
static int enter(int spool_fd, const struct job_users *users, const struct message_open_port *request,
    int *ret_init_fd, struct error *err)
{
    struct job_entry entry;
    int r = job_entry_enter(spool_fd, users, &request->id, &request->token, &entry, err);
    if (r < 0)
        return r;
    *ret_init_fd = entry.init_fd;
    return port_connect(request->id.job, entry.uid, request->port, request->path, err);
}

static int carry(int port_fd, int stream_fd, int init_fd)
{
    _cleanup_(bridge_clear) struct bridge bridge;
    struct pollfd fds[3] = { [2] = { .fd = init_fd, .events = POLLIN } };
    int r = 0;
    bridge_init(&bridge, port_fd, stream_fd, BRIDGE_JOB, NULL);
    while (r == 0) {
        bridge_events(&bridge, fds);
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return -errno;
        r = fds[2].revents != 0 ? -EALREADY : bridge_turn(&bridge, fds);
    }
    return r;
}

static int serve(const struct port_streams *streams, const struct message_open_port *request, int spool_fd,
    bool is_too_many)
{
    struct error err = { 0 };
    _cleanup_close_ int stream_fd = terminal_visit_dial(streams->link_path), init_fd = -1, port_fd = -1;
    if (stream_fd < 0 || chdir("/") < 0)
        return EXIT_FAILURE;
    if (is_too_many)
        (void)error_set(
            &err, -EBUSY, "the node has reached its limit of connections to jobs; try again later");
    else
        port_fd = enter(spool_fd, streams->users, request, &init_fd, &err);
    int r = terminal_visit_say(stream_fd, request->stream, port_fd < 0 ? &err : NULL);
    if (port_fd < 0 || r < 0)
        return EXIT_FAILURE;
    return carry(port_fd, stream_fd, init_fd) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- in the agent --- */

/* The user of the child: users can stop such processes, so they are counted per user. */
static uint64_t find_user(const struct port_streams *streams, const struct spool_id *id)
{
    struct launch_spec spec;
    _cleanup_close_ int dirfd = launcher_open_entry(streams->launcher, id);
    if (dirfd < 0 || file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return USER_NONE;
    uint64_t uid = spec.uid;
    record_clear(&launch_spec_record, &spec);
    return uid;
}

/* A stream above the limit gets its own child to report that, up to twice the limit. */
void port_streams_open(struct port_streams *streams, const struct message_open_port *request)
{
    int pidfd;
    uint64_t user = find_user(streams, &request->id);
    size_t count = child_list_count(streams->children);
    size_t of_user = child_list_count_of(streams->children, user);
    bool is_too_many = count >= PORT_STREAMS_MAX || of_user >= PORT_STREAMS_USER_MAX;
    if (count >= 2 * PORT_STREAMS_MAX || of_user >= 2 * PORT_STREAMS_USER_MAX)
        return; // the controller's wait for the stream times out
    pid_t pid = child_fork(launcher_spool_fd(streams->launcher), &pidfd);
    if (pid == 0) {
        helper_enter(HELPER_PORT);
        _exit(serve(streams, request, CHILD_FD, is_too_many));
    }
    if (pid < 0)
        log_warning(
            "cannot start a process to connect to job %" PRIu64 ": %s", request->id.job, strerror(-pid));
    else
        child_list_add(streams->children, pidfd, user);
}

struct port_streams *port_streams_new(struct event_base *base, const struct launcher *launcher,
    const char *link_path, const struct job_users *users)
{
    struct port_streams *streams = xcalloc(1, sizeof(*streams));
    *streams = (struct port_streams){
        .launcher = launcher, .link_path = link_path, .users = users, .children = child_list_new(base)
    };
    return streams;
}

void port_streams_free(struct port_streams *streams)
{
    if (streams == NULL)
        return;
    child_list_free(streams->children);
    free(streams);
}
