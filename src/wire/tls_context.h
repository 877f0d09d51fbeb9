/* SPDX-License-Identifier: MIT */
/* How connections are secured: TLS 1.3 and nothing older, no resumption, trust by the hash of a key. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/tls_authority.h"

/* What a connection is for is agreed on with the handshake (ALPN), before a byte of it is read. */
#define TLS_FOR_LINK   "mgpu-link/1"
#define TLS_FOR_STREAM "mgpu-stream/1"
#define TLS_FOR_JOIN   "mgpu-join/1"
#define TLS_FOR_HTTP   "http/1.1"

#define TLS_PURPOSES_MAX 4

/*
 * Of a server. It asks for a certificate and takes any: that the other side has the key is proven by the
 * handshake, and who that is must be looked up by the key's hash (tls_peer_pin). `purposes` ends with NULL. A
 * client that names no purpose passes when TLS_FOR_HTTP is among them, as old HTTP clients do.
 */
int tls_context_server(
    const struct tls_authority *authority, const char *const *purposes, SSL_CTX **ret, struct error *err);

/* Of a client that believes whoever is certified by the key with this hash, or has it. `key` and
 * `certificate` are its own, or NULL. The context keeps copies. */
int tls_context_client(
    const uint8_t pin[TLS_PIN_SIZE], EVP_PKEY *key, X509 *certificate, SSL_CTX **ret, struct error *err);

/* The hash of the key that the other side has proven to have; false when it showed no certificate. */
bool tls_peer_pin(SSL *ssl, uint8_t pin[TLS_PIN_SIZE]);

/* What was agreed on: one of the purposes. */
bool tls_is_for(const SSL *ssl, const char *purpose);

void tls_context_freep(SSL_CTX **context);
void tls_session_freep(SSL **ssl);
#define _cleanup_context_ _cleanup_(tls_context_freep)
#define _cleanup_session_ _cleanup_(tls_session_freep)
