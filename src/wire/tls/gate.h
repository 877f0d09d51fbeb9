/* SPDX-License-Identifier: MIT */
/* A listening socket for TLS that limits the memory, time and number of unauthenticated connections. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>
#include <stddef.h>

#define TLS_GATE_PENDING_MAX     64U // connections with an unfinished handshake
#define TLS_GATE_IDLE_TIMEOUT_MS 500 // time for each of them while others wait
#define TLS_GATE_SECONDS         5   // timeout of a handshake

struct tls_gate;

/* A handshake is complete. The callee owns the session and the socket. */
typedef void tls_gate_open_fn(void *arg, SSL *ssl, int fd);

/* Takes ownership of the listening socket, and holds a reference to the context. */
struct tls_gate *tls_gate_new(
    struct event_base *base, SSL_CTX *context, int listen_fd, tls_gate_open_fn *on_open, void *arg);
void tls_gate_free(struct tls_gate *gate);

/* Stops accepting connections; handshakes in progress continue. */
void tls_gate_shut(struct tls_gate *gate);

/* Number of handshakes in progress. */
size_t tls_gate_count(const struct tls_gate *gate);
