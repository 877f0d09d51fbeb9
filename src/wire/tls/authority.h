/* SPDX-License-Identifier: MIT */
/* The certificate authority of one cluster: its key identifies the cluster, and it certifies nodes. */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "wire/tls/key.h"

struct tls_authority;

/*
 * Opens the authority in DIR (created with mode 0700 if missing); creates its key, and a certificate for the
 * server, on first use. The certificate is for mgpud, localhost, and `hosts`, names and addresses of this
 * machine; one that lacks any of them is replaced. Its key, which the programs of mgpu trust, stays.
 */
int tls_authority_open(
    const char *dir, const struct strings *hosts, struct tls_authority **ret, struct error *err);
void tls_authority_free(struct tls_authority *authority);

const uint8_t *tls_authority_pin(const struct tls_authority *authority);
X509 *tls_authority_certificate(const struct tls_authority *authority);
EVP_PKEY *tls_authority_server_key(const struct tls_authority *authority);
X509 *tls_authority_server_certificate(const struct tls_authority *authority);

/* The public key of a certificate request, which proves that the sender has the private key; -EBADMSG if it
 * does not. */
int tls_authority_read_request(const char *pem, EVP_PKEY **ret, struct error *err);

/* Certifies that the holder of `key` is the node NAME. */
int tls_authority_issue(
    const struct tls_authority *authority, EVP_PKEY *key, const char *name, X509 **ret, struct error *err);

/* True if this certificate was issued by this authority; nothing else is checked. */
bool tls_authority_has_issued(const struct tls_authority *authority, X509 *certificate);
