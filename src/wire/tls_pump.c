/* SPDX-License-Identifier: MIT */
/*
 * Every program but this file, and the handshakes, sees plain sockets: what follows the log of a job, holds a
 * terminal or reads frames is the same on one machine and on several (docs/decisions/0006-tls-pump.md).
 *
 *        net ──SSL_read──> [in] ──send──> plain
 *        net <──SSL_write── [out] <──recv── plain
 *
 * Each direction has one buffer. While it is full its source is not read, so that whoever does not read costs
 * that much and stops the one who writes. Each direction ends by itself: the end of the plain side's bytes
 * becomes close_notify, and close_notify becomes a shutdown of the plain side. A plain side that is closed
 * altogether ends both: what the other machine still sends is read and dropped until it has heard so,
 * LINGER_S at most. A socket closed with bytes unread would reset the connection and so take back what was
 * sent last.
 */
#include "wire/tls_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/address.h"
#include "wire/tls_trouble.h"

#define BUFFER_SIZE (32U << 10)
#define ROUNDS_MAX  16 // until others have their turn
#define LINGER_S    5

struct pipe {
    uint8_t bytes[BUFFER_SIZE];
    size_t first, end;       // what is held
    bool is_over, is_closed; // nothing more comes in; and that was passed on
};

struct tls_pump {
    SSL *ssl;
    int net_fd, plain_fd;
    struct event *net_readable, *net_writable, *plain_readable, *plain_writable;
    struct event *lingered; // pending from when all was said and the plain side had left
    struct pipe in, out;
    char *where;      // the other machine
    bool has_left;    // the plain side is closed altogether
    bool is_broken;   // the net side failed
    int want_reading; // of the net: what the last call of each kind waits for, as SSL_ERROR_WANT_*
    int want_writing;
    tls_pump_ended_fn *on_end;
    void *arg;
};

static bool has_room(const struct pipe *pipe)
{
    return !pipe->is_over && pipe->end - pipe->first < BUFFER_SIZE;
}

/* Room at the end, after what is held was moved to the beginning. */
static size_t make_room(struct pipe *pipe)
{
    if (pipe->first > 0) {
        memmove(pipe->bytes, pipe->bytes + pipe->first, pipe->end - pipe->first);
        pipe->end -= pipe->first;
        pipe->first = 0;
    }
    return BUFFER_SIZE - pipe->end;
}

/* All four return 1: something was done, 0: it would wait, < 0: this side is broken. */

/* What a call of OpenSSL that did not succeed waits for, in *want. */
static int judge(struct tls_pump *pump, int result, int *want, struct error *err)
{
    int saved = errno;
    *want = SSL_get_error(pump->ssl, result);
    if (*want == SSL_ERROR_WANT_READ || *want == SSL_ERROR_WANT_WRITE)
        return 0;
    pump->is_broken = true;
    errno = saved;
    return trouble_of_session(pump->ssl, result, pump->where, err);
}

static int read_net(struct tls_pump *pump, struct error *err)
{
    size_t n = 0;
    pump->want_reading = SSL_ERROR_NONE;
    if (!has_room(&pump->in))
        return 0;
    ERR_clear_error();
    errno = 0;
    size_t room = make_room(&pump->in);
    int result = SSL_read_ex(pump->ssl, pump->in.bytes + pump->in.end, room, &n);
    pump->in.end += n;
    if (result == 1)
        return 1;
    if (SSL_get_error(pump->ssl, result) != SSL_ERROR_ZERO_RETURN)
        return judge(pump, result, &pump->want_reading, err);
    pump->in.is_over = true;
    return 1;
}

static int write_net(struct tls_pump *pump, struct error *err)
{
    struct pipe *out = &pump->out;
    size_t n = 0;
    pump->want_writing = SSL_ERROR_NONE;
    if (out->is_closed || (out->first == out->end && !out->is_over))
        return 0;
    ERR_clear_error();
    errno = 0;
    if (out->first == out->end) {
        int told = SSL_shutdown(pump->ssl);
        out->is_closed = told >= 0;
        return told >= 0 ? 1 : judge(pump, told, &pump->want_writing, err);
    }
    int result = SSL_write_ex(pump->ssl, out->bytes + out->first, out->end - out->first, &n);
    out->first += n;
    return result == 1 ? 1 : judge(pump, result, &pump->want_writing, err);
}

/* A plain side that breaks is one that has left: that is how programs end. */
static int read_plain(struct tls_pump *pump)
{
    struct pipe *out = &pump->out;
    if (!has_room(out))
        return 0;
    size_t room = make_room(out);
    ssize_t n = recv(pump->plain_fd, out->bytes + out->end, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n > 0) {
        out->end += (size_t)n;
        return 1;
    }
    struct pollfd look = { .fd = pump->plain_fd };
    out->is_over = true;
    pump->has_left = n < 0 || (poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0);
    return 1;
}

static int write_plain(struct tls_pump *pump)
{
    struct pipe *in = &pump->in;
    if (in->is_closed || (in->first == in->end && !in->is_over))
        return 0;
    if (in->first == in->end) {
        (void)shutdown(pump->plain_fd, SHUT_WR);
        in->is_closed = true;
        return 1;
    }
    ssize_t n = send(pump->plain_fd, in->bytes + in->first, in->end - in->first, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        pump->has_left = true; // what it said before is still to be read
    else
        in->first += (size_t)n;
    return n >= 0;
}

/* Says nothing of failures: whoever would hear of them has left. */
static int drop_net(struct tls_pump *pump)
{
    struct error unheard = { 0 };
    int r = read_net(pump, &unheard);
    pump->in.first = pump->in.end = 0;
    if (r >= 0)
        return r;
    pump->in.is_over = true;
    return 0;
}

static bool is_over(const struct tls_pump *pump)
{
    return pump->out.is_closed && (pump->in.is_closed || (pump->has_left && pump->in.is_over));
}

static void set_event(struct event *event, bool is_wanted)
{
    if (is_wanted)
        (void)event_add(event, NULL);
    else
        (void)event_del(event);
}

static void await(struct tls_pump *pump)
{
    bool wants_read = pump->want_reading == SSL_ERROR_WANT_READ || pump->want_writing == SSL_ERROR_WANT_READ;
    bool wants_write =
        pump->want_reading == SSL_ERROR_WANT_WRITE || pump->want_writing == SSL_ERROR_WANT_WRITE;
    set_event(pump->net_readable, wants_read);
    set_event(pump->net_writable, wants_write);
    set_event(pump->plain_readable, has_room(&pump->out));
    set_event(pump->plain_writable, pump->in.first < pump->in.end && !pump->has_left);
}

static void run(struct tls_pump *pump)
{
    struct error err = { 0 };
    bool is_moving = true;
    for (int round = 0; is_moving && round < ROUNDS_MAX; round++) {
        int received = pump->has_left ? drop_net(pump) : read_net(pump, &err);
        int taken = pump->has_left ? 0 : write_plain(pump);
        int given = read_plain(pump);
        int sent = received < 0 ? 0 : write_net(pump, &err);
        if (received < 0 || sent < 0 || is_over(pump)) {
            pump->on_end(pump->arg, &err);
            return;
        }
        is_moving = received > 0 || taken > 0 || given > 0 || sent > 0;
    }
    await(pump);
    if (pump->has_left && pump->out.is_closed && !event_pending(pump->lingered, EV_TIMEOUT, NULL))
        (void)event_add(pump->lingered, &(struct timeval){ .tv_sec = LINGER_S });
    if (is_moving)
        event_active(pump->plain_readable, EV_READ, 0);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    run(arg);
}

static void on_lingered(evutil_socket_t fd, short what, void *arg)
{
    struct tls_pump *pump = arg;
    pump->on_end(pump->arg, &(struct error){ 0 });
}

struct tls_pump *tls_pump_new(
    struct event_base *base, SSL *ssl, int net_fd, int plain_fd, tls_pump_ended_fn *on_end, void *arg)
{
    struct tls_pump *pump = xcalloc(1, sizeof(*pump));
    pump->ssl = ssl;
    pump->net_fd = net_fd;
    pump->plain_fd = plain_fd;
    pump->where = address_of_peer(net_fd);
    pump->on_end = on_end;
    pump->arg = arg;
    (void)evutil_make_socket_nonblocking(net_fd);
    pump->net_readable = event_new(base, net_fd, EV_READ | EV_PERSIST, on_ready, pump);
    pump->net_writable = event_new(base, net_fd, EV_WRITE | EV_PERSIST, on_ready, pump);
    pump->plain_readable = event_new(base, plain_fd, EV_READ | EV_PERSIST, on_ready, pump);
    pump->plain_writable = event_new(base, plain_fd, EV_WRITE | EV_PERSIST, on_ready, pump);
    pump->lingered = evtimer_new(base, on_lingered, pump);
    if (pump->lingered == NULL || pump->net_readable == NULL || pump->net_writable == NULL ||
        pump->plain_readable == NULL || pump->plain_writable == NULL)
        abort(); // memory
    /* What the handshake read ahead is only seen by asking; in the next turn, for on_end may free us. */
    event_active(pump->plain_readable, EV_READ, 0);
    return pump;
}

void tls_pump_free(struct tls_pump *pump)
{
    if (pump == NULL)
        return;
    struct event *events[] = { pump->net_readable, pump->net_writable, pump->plain_readable,
        pump->plain_writable, pump->lingered };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        event_free(events[i]);
    if (!pump->is_broken && !pump->out.is_closed)
        (void)SSL_shutdown(pump->ssl); // as far as it goes without waiting
    ERR_clear_error();
    SSL_free(pump->ssl);
    free(pump->where);
    (void)close(pump->net_fd);
    (void)close(pump->plain_fd);
    free(pump);
}
