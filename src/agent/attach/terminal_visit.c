/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a terminal do not pass through the agent. It opens the connection and passes it to the process
 * that holds the terminal (SCM_RIGHTS). Keystrokes pass through one process fewer, and a restart of the agent
 * has no effect on them.
 */
#include "agent/attach/terminal_visit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "job/launch.h"

int terminal_visit_dial(const char *link_path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (strlen(link_path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, link_path, strlen(link_path) + 1);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return take_fd(&fd);
}

int terminal_visit_say(int fd, uint64_t stream, const struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct message_stream head = { .stream = stream };
    _cleanup_free_ char *text = err != NULL ? xstrdup(err->message) : NULL;
    if (err != NULL) {
        head.error = -err->code;
        head.text = text;
    }
    record_encode(&message_stream_record, &head, &bytes);
    /* A new connection accepts that much without waiting. */
    ssize_t n = send(fd, bytes.bytes, bytes.length, MSG_NOSIGNAL);
    return n == (ssize_t)bytes.length ? 0 : n < 0 ? -errno : -EIO;
}

int terminal_visit_bring(int spool_fd, const struct spool_id *id, const struct terminal_visit *visit, int fd)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    (void)snprintf(
        address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s/" SPOOL_TTY, spool_fd, name);
    _cleanup_close_ int door = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door < 0 || connect(door, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return descriptor_send(door, visit, sizeof(*visit), fd);
}

/* The spec identifies the attempt by its token: an attempt of another history with the same numbers is not
 * used. */
static int check(int spool_fd, const struct message_open_terminal *request, struct error *err)
{
    struct launch_spec spec;
    char name[SPOOL_NAME_SIZE], path[SPOOL_NAME_SIZE + 8];
    spool_name(&request->id, name);
    (void)snprintf(path, sizeof(path), "%s/" SPOOL_SPEC, name);
    int r = file_read_record(spool_fd, path, &launch_spec_record, &spec, NULL);
    bool is_ours = r == 0 && spec.token == request->token;
    bool is_tty = r == 0 && spec.is_tty, is_input_sent = r == 0 && spec.is_input_sent;
    if (r == 0)
        record_clear(&launch_spec_record, &spec);
    if (!is_ours)
        return error_set(err, -EALREADY, "job %" PRIu64 " is no longer running", request->id.job);
    if (request->is_input && !is_input_sent)
        return error_set(
            err, -EINVAL, "the standard input of job %" PRIu64 " is not sent by a client", request->id.job);
    if (!request->is_input && !is_tty)
        return error_set(err, -ENOTTY, "job %" PRIu64 " has no terminal", request->id.job);
    return 0;
}

void terminal_visit_open(int spool_fd, const char *link_path, const struct message_open_terminal *request)
{
    struct error err = { 0 };
    const struct terminal_visit visit = { .magic = TERMINAL_VISIT_MAGIC,
        .is_read_only = request->is_read_only,
        .size = { (uint16_t)request->rows, (uint16_t)request->columns },
        .position = request->position };
    _cleanup_close_ int fd = terminal_visit_dial(link_path);
    if (fd < 0) {
        log_warning("cannot connect to the controller for a terminal: %s", strerror(-fd));
        return;
    }
    int r = check(spool_fd, request, &err);
    if (r == 0)
        r = terminal_visit_say(fd, request->stream, NULL);
    else
        r = terminal_visit_say(fd, request->stream, &err);
    if (r < 0 || err.code < 0)
        return;
    /* Its process has ended: the connection is closed without a message, and the viewer queries the job's
     * state. */
    (void)terminal_visit_bring(spool_fd, &request->id, &visit, fd);
}
