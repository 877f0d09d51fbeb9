/* SPDX-License-Identifier: MIT */
/*
 * All other code, except the handshakes, uses plain sockets: following the log of a job, terminals and frames
 * work in the same way on one machine and on several (docs/decisions/0006-tls-pump.md).
 *
 *        net ──SSL_read──> [in] ──send──> plain
 *        net <──SSL_write── [out] <──recv── plain
 *
 * Each direction has one buffer while it contains data. While it is full its source is not read, so a slow
 * reader costs only that buffer and stops the writer. As much as possible is moved at a time, because a
 * wake-up costs more than the copy. Each direction ends by itself: the end of the plain side becomes
 * close_notify, and close_notify becomes a shutdown of the plain side.
 *
 * Data that one side sent before it closed still arrives, even if that side accepts nothing any more: it is
 * read to its end. A plain side that is closed completely ends both, but only after the other machine has
 * sent its end (or its time is up): closing a socket with unread bytes would reset the connection and lose
 * the last data.
 *
 * The plain side's event is edge-triggered, which is the only way to detect that a side whose end was read
 * before has now been closed completely. Readiness is remembered until a call would block.
 */
#include "wire/tls/pump.h"

#include <errno.h>
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
#include "wire/tls/dial.h"
#include "wire/tls/trouble.h"

#define BUFFER_SIZE ((size_t)64 << 10)
#define RECORD_MAX  ((size_t)16 << 10) // bytes of a record of TLS
#define ROUNDS_MAX  8                  // until others have their turn
#define LINGER_MS   5000               // for the other machine's end, after this one's

struct pipe {
    uint8_t *bytes;          // NULL while it holds no data: most connections are silent
    size_t first, end;       // what is held
    bool is_over, is_closed; // no more input; no more output
};

/* Operations that need not be tried, because the last call would have blocked. */
struct readiness {
    bool net_read, net_write, plain_read, plain_write;
};

struct tls_pump {
    SSL *ssl;
    int net_fd, plain_fd;
    struct event *net_readable, *net_writable, *plain_ready, *again, *linger;
    struct readiness may;
    struct pipe in, out;
    char *where;         // the other machine
    bool has_left;       // the plain side is completely closed
    bool is_broken;      // the net side failed,
    struct error broken; // so
    int want_reading;    // of the net: what the last call of each kind waits for, as SSL_ERROR_WANT_*
    int want_writing;
    tls_pump_ended_fn *on_end;
    void *arg;
};

static size_t held(const struct pipe *pipe)
{
    return pipe->end - pipe->first;
}

static bool has_room(const struct pipe *pipe)
{
    return !pipe->is_over && held(pipe) < BUFFER_SIZE;
}

/* Room at the end; moves the data to the front if there would be little. */
static size_t make_room(struct pipe *pipe)
{
    if (pipe->bytes == NULL)
        pipe->bytes = xreallocarray(NULL, BUFFER_SIZE, 1);
    if (held(pipe) == 0 || BUFFER_SIZE - pipe->end < RECORD_MAX) {
        memmove(pipe->bytes, pipe->bytes + pipe->first, held(pipe));
        pipe->end -= pipe->first;
        pipe->first = 0;
    }
    return BUFFER_SIZE - pipe->end;
}

static void release_empty(struct pipe *pipe)
{
    if (held(pipe) > 0)
        return;
    free(take_ptr(pipe->bytes));
    pipe->first = pipe->end = 0;
}

/* Buffered and further data is dropped from now on. */
static void close_pipe(struct pipe *pipe)
{
    pipe->is_closed = true;
    pipe->first = pipe->end = 0;
}

/* Sets *want to the condition that an unsuccessful call of OpenSSL waits for; false if it has failed. */
static bool is_waiting(struct tls_pump *pump, int result, int *want)
{
    int saved = errno;
    *want = SSL_get_error(pump->ssl, result);
    if (*want == SSL_ERROR_WANT_READ || *want == SSL_ERROR_WANT_WRITE)
        return true;
    errno = saved;
    /* After both sides have left it does not matter how the connection ends. */
    if (!pump->is_broken && !(pump->has_left && pump->out.is_closed))
        (void)trouble_of_session(pump->ssl, result, pump->where, &pump->broken);
    pump->is_broken = true;
    pump->may.net_read = pump->may.net_write =
        true; // received data is still buffered, and no more is expected
    *want = SSL_ERROR_NONE;
    return false;
}

/* The next four return true if they made progress and should be called again. */

static bool read_net(struct tls_pump *pump)
{
    struct pipe *in = &pump->in;
    bool has_read = false;
    while (pump->may.net_read && has_room(in)) {
        size_t n = 0, room = make_room(in);
        ERR_clear_error();
        errno = 0;
        pump->want_reading = SSL_ERROR_NONE;
        int result = SSL_read_ex(pump->ssl, in->bytes + in->end, room, &n);
        in->end += in->is_closed ? 0 : n;
        has_read = true;
        if (result == 1 && in->is_closed)
            break; // others get their turn, however much data is to be dropped
        if (result == 1)
            continue;
        bool was_broken = pump->is_broken;
        if (SSL_get_error(pump->ssl, result) != SSL_ERROR_ZERO_RETURN &&
            is_waiting(pump, result, &pump->want_reading) && !was_broken) {
            pump->may.net_read = false;
            break;
        }
        /* Or writing to it had failed, and now all its data has been read. */
        pump->want_reading = SSL_ERROR_NONE;
        in->is_over = true;
    }
    return has_read;
}

/* False if it must wait. */
static bool write_records(struct tls_pump *pump)
{
    struct pipe *out = &pump->out;
    while (held(out) > 0) {
        size_t n = 0;
        ERR_clear_error();
        errno = 0;
        int result = SSL_write_ex(pump->ssl, out->bytes + out->first, held(out), &n);
        out->first += n;
        if (result != 1)
            return !is_waiting(pump, result, &pump->want_writing);
    }
    return true;
}

static bool write_end(struct tls_pump *pump)
{
    ERR_clear_error();
    errno = 0;
    int result = SSL_shutdown(pump->ssl);
    pump->out.is_closed = result >= 0;
    return pump->out.is_closed || !is_waiting(pump, result, &pump->want_writing);
}

static bool write_net(struct tls_pump *pump)
{
    struct pipe *out = &pump->out;
    if (out->is_closed || !pump->may.net_write || (held(out) == 0 && !out->is_over && !pump->is_broken))
        return false;
    pump->want_writing = SSL_ERROR_NONE;
    if (!pump->is_broken) {
        size_t before = held(out);
        pump->may.net_write = before > 0 ? write_records(pump) : write_end(pump);
        if (!pump->is_broken)
            return pump->may.net_write || held(out) < before;
    }
    close_pipe(out);
    return true;
}

static bool has_hung_up(const struct tls_pump *pump)
{
    struct pollfd look = { .fd = pump->plain_fd };
    return poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0;
}

/* Stops waiting for the other machine to accept or send data. */
static void leave(struct tls_pump *pump)
{
    pump->has_left = true;
    close_pipe(&pump->in);
    tls_dial_set_timeout(pump->net_fd, TLS_DIAL_TIMEOUT_MS);
}

/* A broken plain side counts as closed: programs end that way. */
static bool read_plain(struct tls_pump *pump)
{
    struct pipe *out = &pump->out;
    ssize_t n = 0;
    if (!pump->may.plain_read || pump->has_left || (!out->is_over && !has_room(out)))
        return false;
    if (!out->is_over) {
        size_t room = make_room(out);
        n = recv(pump->plain_fd, out->bytes + out->end, room, MSG_DONTWAIT);
    }
    if (n > 0) {
        out->end += out->is_closed ? 0 : (size_t)n;
        return true;
    }
    if (n < 0 && errno == EINTR)
        return true;
    pump->may.plain_read = false;
    if (n < 0 && errno == EAGAIN)
        return false;
    bool was_over = out->is_over;
    out->is_over = true;
    if (n < 0 || has_hung_up(pump))
        leave(pump);
    return pump->has_left || !was_over;
}

static bool write_plain(struct tls_pump *pump)
{
    struct pipe *in = &pump->in;
    if (in->is_closed || (held(in) == 0 && !in->is_over))
        return false;
    if (held(in) == 0) {
        (void)shutdown(pump->plain_fd, SHUT_WR);
        in->is_closed = true;
        return true;
    }
    if (!pump->may.plain_write)
        return false;
    ssize_t n = send(pump->plain_fd, in->bytes + in->first, held(in), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
        in->first += (size_t)n;
        return true;
    }
    if (errno == EINTR)
        return true;
    if (errno == EAGAIN) {
        pump->may.plain_write = false;
        return false;
    }
    close_pipe(in); // data sent before is still to be read
    if (pump->out.is_over)
        leave(pump);
    return true;
}

static bool is_over(const struct tls_pump *pump)
{
    return pump->in.is_over && pump->in.is_closed && pump->out.is_closed;
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
    release_empty(&pump->in);
    release_empty(&pump->out);
    struct timeval wait = { .tv_sec = LINGER_MS / 1000 };
    if (pump->has_left && pump->out.is_closed && !evtimer_pending(pump->linger, NULL))
        (void)evtimer_add(pump->linger, &wait);
}

static void run(struct tls_pump *pump)
{
    bool is_moving = true;
    for (int round = 0; is_moving && round < ROUNDS_MAX; round++) {
        is_moving = read_net(pump);
        is_moving |= write_plain(pump);
        is_moving |= read_plain(pump);
        is_moving |= write_net(pump);
        if (is_over(pump)) {
            struct error err = pump->broken;
            pump->on_end(pump->arg, &err);
            return;
        }
    }
    await(pump);
    /* By a timer: libevent checks no descriptor while active events keep activating others. */
    if (is_moving)
        (void)evtimer_add(pump->again, &(struct timeval){ 0 });
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    run(arg);
}

static void on_net(evutil_socket_t fd, short what, void *arg)
{
    struct tls_pump *pump = arg;
    pump->may.net_read = pump->may.net_write = true;
    run(pump);
}

static void on_plain(evutil_socket_t fd, short what, void *arg)
{
    struct tls_pump *pump = arg;
    pump->may.plain_read |= (what & EV_READ) != 0;
    pump->may.plain_write |= (what & EV_WRITE) != 0;
    run(pump);
}

/* The other machine does not close, or keeps sending data that no program reads. */
static void on_linger(evutil_socket_t fd, short what, void *arg)
{
    struct tls_pump *pump = arg;
    struct error err = { 0 };
    pump->on_end(pump->arg, &err);
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
    pump->may = (struct readiness){ true, true, true, true };
    pump->net_readable = event_new(base, net_fd, EV_READ | EV_PERSIST, on_net, pump);
    pump->net_writable = event_new(base, net_fd, EV_WRITE | EV_PERSIST, on_net, pump);
    pump->plain_ready = event_new(base, plain_fd, EV_READ | EV_WRITE | EV_PERSIST | EV_ET, on_plain, pump);
    pump->again = evtimer_new(base, on_again, pump);
    pump->linger = evtimer_new(base, on_linger, pump);
    if (pump->net_readable == NULL || pump->net_writable == NULL || pump->plain_ready == NULL ||
        pump->again == NULL || pump->linger == NULL || event_add(pump->plain_ready, NULL) < 0)
        abort(); // memory
    /* What the handshake read ahead is only seen by asking; in the next turn, for on_end may free us. */
    (void)evtimer_add(pump->again, &(struct timeval){ 0 });
    return pump;
}

void tls_pump_free(struct tls_pump *pump)
{
    if (pump == NULL)
        return;
    struct event *events[] = { pump->net_readable, pump->net_writable, pump->plain_ready, pump->again,
        pump->linger };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        event_free(events[i]);
    if (!pump->is_broken && !pump->out.is_closed)
        (void)SSL_shutdown(pump->ssl); // as far as it goes without waiting
    ERR_clear_error();
    SSL_free(pump->ssl);
    free(pump->in.bytes);
    free(pump->out.bytes);
    free(pump->where);
    (void)close(pump->net_fd);
    (void)close(pump->plain_fd);
    free(pump);
}
