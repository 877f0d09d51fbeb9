/* SPDX-License-Identifier: MIT */
/* A listening socket on which TLS is spoken: strangers get little memory, little time, and only so many at
 * once. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>
#include <stddef.h>

#define TLS_GATE_PENDING_MAX 64U // connections whose handshake is not over
#define TLS_GATE_SECONDS     5   // a handshake may take

struct tls_gate;

/* A handshake is over. The session and the socket are the callee's. */
typedef void tls_gate_open_fn(void *arg, SSL *ssl, int fd);

/* Takes over the listening socket; keeps the context for itself too. */
struct tls_gate *tls_gate_new(
    struct event_base *base, SSL_CTX *context, int listen_fd, tls_gate_open_fn *on_open, void *arg);
void tls_gate_free(struct tls_gate *gate);

/* Takes no more connections; those whose handshake has begun go on. */
void tls_gate_shut(struct tls_gate *gate);

/* How many handshakes are not over. */
size_t tls_gate_count(const struct tls_gate *gate);
