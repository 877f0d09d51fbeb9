/* SPDX-License-Identifier: MIT */
/* TLS settings of all connections: TLS 1.3 only, no resumption, trust by the hash of a key. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/tls/authority.h"

/* The purpose of a connection is negotiated in the handshake (ALPN), before any data is read. */
#define TLS_FOR_LINK   "mgpu-link/1"
#define TLS_FOR_STREAM "mgpu-stream/1"
#define TLS_FOR_JOIN   "mgpu-join/1"
#define TLS_FOR_HTTP   "http/1.1"
#define TLS_FOR_LEADER "mgpu-leader/1" // the same, of several controllers by the leading one

/*
 * Of a server. It requests a certificate and accepts any: the handshake proves that the peer has the key, and
 * the caller looks it up by the key's hash (tls_peer_pin). `purposes` is terminated by NULL. A client that
 * names no purpose is accepted if TLS_FOR_HTTP is among them, for old HTTP clients.
 */
int tls_context_server(
    const struct tls_authority *authority, const char *const *purposes, SSL_CTX **ret, struct error *err);

/* Of a client that trusts the server that has the key with this hash, or is certified by it. `key` and
 * `certificate` are the client's own, or NULL. The context keeps copies. */
int tls_context_client(
    const uint8_t pin[TLS_PIN_SIZE], EVP_PKEY *key, X509 *certificate, SSL_CTX **ret, struct error *err);

/* For a program whose threads may still be in a handshake when it exits: keeps OpenSSL from freeing what they
 * use. To be called before any other function of OpenSSL. */
void tls_keep_at_exit(void);

/* The hash of the key that the peer has proved to possess; false if it presented no certificate. */
bool tls_peer_pin(SSL *ssl, uint8_t pin[TLS_PIN_SIZE]);

/* The negotiated purpose. */
bool tls_is_for(const SSL *ssl, const char *purpose);

void tls_context_freep(SSL_CTX **context);
void tls_session_freep(SSL **ssl);
#define _cleanup_context_ _cleanup_(tls_context_freep)
#define _cleanup_session_ _cleanup_(tls_session_freep)
