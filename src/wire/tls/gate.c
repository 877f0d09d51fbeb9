/* SPDX-License-Identifier: MIT */
/*
 * A connection is PENDING until its handshake is complete, and then belongs to the owner of the gate.
 * Failures are logged, at most once a second: the port is open to anyone. If there are too many connections,
 * the next ones wait in the kernel until a handshake is complete, as when a thousand nodes reconnect at once;
 * the oldest is closed after TLS_GATE_IDLE_TIMEOUT_MS, so silent clients do not block others for long. Each
 * step of a handshake is a separate callback.
 */
#include "wire/tls/gate.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/log_quota.h"
#include "base/memory.h"
#include "wire/address.h"
#include "wire/listening.h"
#include "wire/tls/trouble.h"

struct pending {
    struct tls_gate *gate;
    SSL *ssl;
    int fd;
    int64_t since_ms;
    char *peer; // its address, which is no longer available from the socket after the peer has closed
    struct event *readable, *writable, *deadline;
    struct pending *next, **where;
};

struct tls_gate {
    struct event_base *base;
    SSL_CTX *context;
    struct listening *listening;
    tls_gate_open_fn *on_open;
    void *arg;
    struct pending *first;
    size_t count;
    struct event *idle_timer; // while paused: when the oldest is closed
    struct log_quota quota;
};

static void pending_free(struct pending *pending)
{
    struct tls_gate *gate = pending->gate;
    *pending->where = pending->next;
    if (pending->next != NULL)
        pending->next->where = pending->where;
    if (gate->count-- == TLS_GATE_PENDING_MAX)
        listening_resume(gate->listening);
    event_free(pending->readable);
    event_free(pending->writable);
    event_free(pending->deadline);
    SSL_free(pending->ssl);
    closep(&pending->fd);
    free(pending->peer);
    free(pending);
}

static void log_refusal(struct tls_gate *gate, const char *where, const char *why)
{
    if (log_quota_take(&gate->quota, "refused connections"))
        log_info("connection from %s refused: %s", where, why);
}

static void shake(struct pending *pending)
{
    struct tls_gate *gate = pending->gate;
    ERR_clear_error();
    errno = 0;
    int result = SSL_accept(pending->ssl);
    int kind = result == 1 ? SSL_ERROR_NONE : SSL_get_error(pending->ssl, result);
    if (result == 1) {
        SSL *ssl = take_ptr(pending->ssl);
        int fd = take_fd(&pending->fd);
        pending_free(pending);
        gate->on_open(gate->arg, ssl, fd);
        return;
    }
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        (void)event_add(kind == SSL_ERROR_WANT_READ ? pending->readable : pending->writable, NULL);
        return;
    }
    struct error err = { 0 };
    (void)trouble_of_accept(pending->ssl, result, &err);
    if (BIO_number_read(SSL_get_rbio(pending->ssl)) == 0) // it only checked whether the port is open
        log_debug("connection from %s closed without a byte", pending->peer);
    else
        log_refusal(gate, pending->peer, err.message);
    pending_free(pending);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    shake(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct pending *pending = arg;
    log_refusal(pending->gate, pending->peer, "the handshake timed out");
    pending_free(pending);
}

static struct pending *find_oldest(const struct tls_gate *gate)
{
    struct pending *oldest = gate->first;
    while (oldest != NULL && oldest->next != NULL)
        oldest = oldest->next;
    return oldest;
}

/* All slots are taken, possibly for some time. */
static void expire_oldest(struct tls_gate *gate)
{
    struct pending *oldest = find_oldest(gate);
    int64_t left_ms = oldest->since_ms + TLS_GATE_IDLE_TIMEOUT_MS - clock_boot_ms();
    if (left_ms <= 0) {
        log_refusal(gate, oldest->peer, "it is idle, and other connections are waiting");
        pending_free(oldest);
        return;
    }
    (void)evtimer_add(gate->idle_timer, &(struct timeval){ .tv_usec = left_ms * 1000 });
}

static void on_idle_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct tls_gate *gate = arg;
    if (gate->count >= TLS_GATE_PENDING_MAX)
        expire_oldest(gate);
}

static void on_accept(void *arg, int fd)
{
    struct tls_gate *gate = arg;
    SSL *ssl = SSL_new(gate->context);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
        log_refusal(gate, "somewhere", "out of memory");
        SSL_free(ssl);
        (void)close(fd);
        return;
    }
    struct pending *pending = xcalloc(1, sizeof(*pending));
    *pending = (struct pending){ .gate = gate,
        .ssl = ssl,
        .fd = fd,
        .since_ms = clock_boot_ms(),
        .peer = address_of_peer(fd),
        .next = gate->first,
        .where = &gate->first };
    if (pending->next != NULL)
        pending->next->where = &pending->next;
    gate->first = pending;
    gate->count++;
    pending->readable = event_new(gate->base, fd, EV_READ, on_ready, pending);
    pending->writable = event_new(gate->base, fd, EV_WRITE, on_ready, pending);
    pending->deadline = evtimer_new(gate->base, on_deadline, pending);
    if (pending->readable == NULL || pending->writable == NULL || pending->deadline == NULL)
        abort(); // memory
    (void)evtimer_add(pending->deadline, &(struct timeval){ .tv_sec = TLS_GATE_SECONDS });
    (void)event_add(pending->readable, NULL); // the client begins
    if (gate->count < TLS_GATE_PENDING_MAX)
        return;
    listening_pause(gate->listening);
    expire_oldest(gate);
}

struct tls_gate *tls_gate_new(
    struct event_base *base, SSL_CTX *context, int listen_fd, tls_gate_open_fn *on_open, void *arg)
{
    struct tls_gate *gate = xcalloc(1, sizeof(*gate));
    (void)SSL_CTX_up_ref(context);
    *gate = (struct tls_gate){ .base = base, .context = context, .on_open = on_open, .arg = arg };
    gate->idle_timer = evtimer_new(base, on_idle_timeout, gate);
    gate->listening = listening_new(base, listen_fd, on_accept, gate);
    if (gate->listening == NULL || gate->idle_timer == NULL)
        abort(); // memory
    return gate;
}

void tls_gate_free(struct tls_gate *gate)
{
    if (gate == NULL)
        return;
    while (gate->first != NULL)
        pending_free(gate->first);
    event_free(gate->idle_timer);
    listening_free(gate->listening);
    SSL_CTX_free(gate->context);
    free(gate);
}

void tls_gate_shut(struct tls_gate *gate)
{
    listening_stop(gate->listening);
}

size_t tls_gate_count(const struct tls_gate *gate)
{
    return gate->count;
}
