/* SPDX-License-Identifier: MIT */
/*
 *   find the attempt ──> dial the controller ──> enter the job's cgroup ──> become its user
 *       ──> JOB_CLIENT ──> bytes in both directions, until one side has ended or the job's init has
 *
 * The bytes are HTTP, which this process does not parse: mgpud answers. If mgpud cannot, one of three fixed
 * responses is sent.
 */
#include "agent/attach/job_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/attach/job_entry.h"
#include "agent/attach/terminal_visit.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "wire/message.h"

#define HEAD_MS     2000 // time for the head of a request that is answered here
#define LINGER_MS   2000 // time for the rest of that request, which is dropped
#define LINGER_MAX  (4U << 20)
#define BUFFER_SIZE (64U << 10)

/* --- answers of this node --- */

struct answer {
    const char *status, *code, *detail, *hint;
};

static const struct answer outside = { "403 Forbidden", "not_allowed",
    "only commands in jobs can use mgpud through this machine without a token",
    "use mgpud's machine, or set MGPU_HOST and a token: mgpu token create, on mgpud's machine" };
static const struct answer crowded = { "503 Service Unavailable", "too_many_connections",
    "the commands in this job have too many connections", "try again in a moment" };
static const struct answer away = { "503 Service Unavailable", "controller_away",
    "mgpud does not answer this node", "try again in some seconds; jobs are not affected" };

/* Reads and drops input up to the end of a head, or with `is_all` until the client has finished sending. */
static void drop_input(int fd, int64_t time_ms, bool is_all)
{
    char bytes[4096];
    size_t length = 0, all = 0;
    int64_t until_ms = clock_boot_ms() + time_ms, left_ms;
    while ((left_ms = until_ms - clock_boot_ms()) > 0 && all < LINGER_MAX) {
        struct pollfd source = { .fd = fd, .events = POLLIN };
        if (poll(&source, 1, (int)left_ms) <= 0)
            return;
        ssize_t n = recv(fd, &bytes[length], sizeof(bytes) - length, 0);
        if (n <= 0)
            return;
        all += (size_t)n;
        length += (size_t)n;
        if (!is_all && memmem(bytes, length, "\r\n\r\n", 4) != NULL)
            return;
        if (length > sizeof(bytes) / 2) { // keeps an end mark together that is split between two reads
            memmove(bytes, &bytes[length - 3], 3);
            length = 3;
        }
    }
}

static void reply(int fd, const struct answer *answer)
{
    _cleanup_free_ char *body = xasprintf("{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%.3s,"
                                          "\"code\":\"%s\",\"detail\":\"%s\",\"hint\":\"%s\"}\n",
        answer->status + 4, answer->status, answer->code, answer->detail, answer->hint);
    _cleanup_free_ char *text = xasprintf("HTTP/1.1 %s\r\n"
                                          "Content-Type: application/problem+json\r\n"
                                          "Content-Length: %zu\r\n"
                                          "Connection: close\r\n"
                                          "\r\n"
                                          "%s",
        answer->status, strlen(body), body);
    (void)send(fd, text, strlen(text), MSG_NOSIGNAL); // a new connection accepts that much
    (void)shutdown(fd, SHUT_WR);
    drop_input(fd, LINGER_MS, true);
}

/* --- bytes --- */

/* One direction. */
struct flow {
    int from, to;
    char *bytes;
    size_t at, end;
    bool is_over; // no more will be read
};

static void flow_read(struct flow *flow)
{
    if (flow->is_over || flow->end > 0)
        return;
    ssize_t n = recv(flow->from, flow->bytes, BUFFER_SIZE, 0);
    if (n > 0)
        flow->end = (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        flow->is_over = true;
}

static void flow_write(struct flow *flow)
{
    if (flow->end == 0)
        return;
    ssize_t n = send(flow->to, &flow->bytes[flow->at], flow->end - flow->at, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    flow->at += n > 0 ? (size_t)n : 0;
    flow->is_over = flow->is_over || n < 0;
    if (n < 0 || flow->at == flow->end)
        flow->at = flow->end = 0;
}

static struct pollfd wait_for(const struct flow *in, const struct flow *out)
{
    short events = !in->is_over && in->end == 0 ? POLLIN : 0;
    return (struct pollfd){ .fd = in->from, .events = (short)(events | (out->end > 0 ? POLLOUT : 0)) };
}

/* The client has closed its side, or its job has ended: no process reads an answer, but messages sent before
 * still count, such as a received exit status. */
static void pass_last_words(struct flow *up)
{
    for (;;) {
        struct pollfd room = { .fd = up->to, .events = POLLOUT };
        flow_read(up);
        if (up->end == 0 || poll(&room, 1, LINGER_MS) <= 0)
            return;
        flow_write(up);
    }
}

/* False if mgpud closed the connection without an answer. */
static bool relay(int client_fd, int stream_fd, int init_fd)
{
    _cleanup_free_ char *bytes = xcalloc(2, BUFFER_SIZE);
    struct flow up = { .from = client_fd, .to = stream_fd, .bytes = bytes };
    struct flow down = { .from = stream_fd, .to = client_fd, .bytes = bytes + BUFFER_SIZE };
    bool has_answered = false, is_shut = false;
    while (!down.is_over || down.end > 0) {
        struct pollfd fds[3] = { wait_for(&up, &down), wait_for(&down, &up),
            { .fd = init_fd, .events = POLLIN } };
        if (fds[1].events == 0)
            fds[1].fd = -1; // its hang-up is already known
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            break;
        if (fds[2].revents != 0 || (fds[0].revents & (POLLHUP | POLLERR)) != 0) {
            pass_last_words(&up);
            return true;
        }
        flow_read(&up);
        flow_write(&up);
        flow_read(&down);
        has_answered = has_answered || down.end > 0;
        flow_write(&down);
        if (up.is_over && up.end == 0 && !is_shut)
            is_shut = shutdown(stream_fd, SHUT_WR) == 0 || errno != EINTR;
    }
    return has_answered;
}

/* --- the whole --- */

static int send_identity(int fd, const struct spool_id *id, uint64_t token)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    const struct message_job_client first = { .id = *id, .token = token };
    record_encode(&message_job_client_record, &first, &bytes);
    /* A new connection accepts that much without waiting. */
    ssize_t n = send(fd, bytes.bytes, bytes.length, MSG_NOSIGNAL);
    return n == (ssize_t)bytes.length ? 0 : -EIO;
}

static int serve_job(const struct job_client *client, int fd)
{
    struct error err = { 0 };
    struct job_entry entry;
    _cleanup_close_ int spool_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int stream_fd = terminal_visit_dial(client->link_path);
    if (chdir("/") < 0)
        return EXIT_FAILURE;
    if (job_entry_enter(spool_fd, client->users, &client->id, NULL, &entry, &err) < 0 ||
        entry.uid != client->uid) { // a program with another user's privileges is not part of the job
        reply(fd, &outside);
        return EXIT_FAILURE;
    }
    _cleanup_close_ int init_fd = entry.init_fd;
    bool is_answered = stream_fd >= 0 && send_identity(stream_fd, &client->id, entry.token) == 0 &&
                       relay(fd, stream_fd, init_fd);
    if (!is_answered)
        reply(fd, &away);
    return is_answered ? EXIT_SUCCESS : EXIT_FAILURE;
}

int job_client_serve(const struct job_client *client, int fd)
{
    if (client->kind == JOB_CLIENT_OF_JOB)
        return serve_job(client, fd);
    drop_input(fd, HEAD_MS, false);
    reply(fd, client->kind == JOB_CLIENT_OUTSIDE ? &outside : &crowded);
    return EXIT_SUCCESS;
}
