/* SPDX-License-Identifier: MIT */
/* The authority of one cluster: its key, which says who belongs to it, and what it certifies. */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/tls_key.h"

struct tls_authority;

/* Opens the authority in DIR (made 0700 when missing), making its key, and a certificate for the server, on
 * the first need. */
int tls_authority_open(const char *dir, struct tls_authority **ret, struct error *err);
void tls_authority_free(struct tls_authority *authority);

const uint8_t *tls_authority_pin(const struct tls_authority *authority);
X509 *tls_authority_certificate(const struct tls_authority *authority);
EVP_PKEY *tls_authority_server_key(const struct tls_authority *authority);
X509 *tls_authority_server_certificate(const struct tls_authority *authority);

/* The public key of a request that proves that its sender has the private one; -EBADMSG when it does not. */
int tls_authority_read_request(const char *pem, EVP_PKEY **ret, struct error *err);

/* Certifies that the holder of `key` is the node NAME. */
int tls_authority_issue(
    const struct tls_authority *authority, EVP_PKEY *key, const char *name, X509 **ret, struct error *err);

/* True when this certificate was issued here, whatever else became of it. */
bool tls_authority_has_issued(const struct tls_authority *authority, X509 *certificate);
