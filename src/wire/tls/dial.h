/* SPDX-License-Identifier: MIT */
/* Connects to another machine in three steps that can fail for different reasons. All block, at most until
 * the given time. */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/address.h"

struct addrinfo;

/* Resolves a name; free the result with freeaddrinfo(3). */
int tls_dial_resolve(const struct address *address, struct addrinfo **ret, struct error *err);

/* A connected, non-blocking socket to the first address that responds. It detects a dead peer within half a
 * minute. */
int tls_dial_connect(const struct addrinfo *addresses, const struct address *address, int64_t until_boot_ms,
    int *ret_fd, struct error *err);

/* All three. */
int tls_dial(SSL_CTX *context, const struct address *address, const char *purpose, int64_t until_boot_ms,
    SSL **ret, int *ret_fd, struct error *err);

/* Sends all bytes, or receives exactly `length`, on a new session, until that time. `where` is for the
 * error. */
int tls_dial_send(
    SSL *ssl, const void *bytes, size_t length, int64_t until_boot_ms, const char *where, struct error *err);
int tls_dial_receive(
    SSL *ssl, void *bytes, size_t length, int64_t until_boot_ms, const char *where, struct error *err);

/* Options of every TCP connection between machines: no delay, and keepalive probes. */
void tls_dial_tune(int fd);

#define TLS_DIAL_TIMEOUT_MS 30000

/* How long the peer may leave data unacknowledged or its window closed before the connection breaks; 0: the
 * defaults of the system, a quarter of an hour and no limit. */
void tls_dial_set_timeout(int fd, unsigned ms);
