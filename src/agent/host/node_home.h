/* SPDX-License-Identifier: MIT */
/* What a node that has joined keeps in STATE/node/tls: its key, who it is, and where its controller is. */
#pragma once

#include <openssl/types.h>

#include "base/error.h"
#include "wire/address.h"
#include "wire/tls_key.h"

struct node_home {
    int dirfd;
    EVP_PKEY *key;
    X509 *certificate;         // NULL: it has not joined
    char *name;                // the certificate's
    struct address controller; // empty: it has not joined
    uint8_t pin[TLS_PIN_SIZE]; // of the cluster
};

/* Opens it, making the directory and the key when there is none. */
int node_home_open(const char *state_dir, struct node_home *ret, struct error *err);

/* What joining brought, durable when it returns. */
int node_home_save(struct node_home *home, X509 *certificate, const struct address *controller,
    const uint8_t pin[TLS_PIN_SIZE], struct error *err);

void node_home_close(struct node_home *home);
