/* SPDX-License-Identifier: MIT */
/* A connection to another machine, in three steps that can fail for different reasons. All wait, for at most
 * the time that is left. */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/address.h"

struct addrinfo;

/* The addresses of a name; freeaddrinfo(3). */
int tls_dial_resolve(const struct address *address, struct addrinfo **ret, struct error *err);

/* A connected, non-blocking socket to the first of them that answers. It notices within half a minute when
 * the other machine has gone. */
int tls_dial_connect(const struct addrinfo *addresses, const struct address *address, int64_t until_boot_ms,
    int *ret_fd, struct error *err);

/* All three. */
int tls_dial(SSL_CTX *context, const struct address *address, const char *purpose, int64_t until_boot_ms,
    SSL **ret, int *ret_fd, struct error *err);

/* Sends all, or receives exactly `length` bytes, of a fresh session, by then. `where` is for the error. */
int tls_dial_send(
    SSL *ssl, const void *bytes, size_t length, int64_t until_boot_ms, const char *where, struct error *err);
int tls_dial_receive(
    SSL *ssl, void *bytes, size_t length, int64_t until_boot_ms, const char *where, struct error *err);

/* What every TCP connection between machines has set: no delay, and that a silent one is asked whether it is
 * still there. */
void tls_dial_tune(int fd);

#define TLS_DIAL_TIMEOUT_MS 30000

/* How long the other machine may acknowledge nothing, or take nothing of what waits for it, before the
 * connection breaks; 0: silence is borne for a quarter of an hour, and not taking for ever. */
void tls_dial_set_timeout(int fd, unsigned ms);
