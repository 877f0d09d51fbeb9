/* SPDX-License-Identifier: MIT */
/* The identity of a joined node in STATE/node/tls: its key, its certificate, and the address of its
 * controller. */
#pragma once

#include <openssl/types.h>

#include "base/error.h"
#include "wire/address.h"
#include "wire/tls/key.h"

struct node_home {
    int dirfd;
    EVP_PKEY *key;
    X509 *certificate;         // NULL: not joined
    char *name;                // the certificate's
    struct address controller; // empty: not joined
    uint8_t pin[TLS_PIN_SIZE]; // of the cluster
};

/* Opens it; creates the directory and the key if missing. */
int node_home_open(const char *state_dir, struct node_home *ret, struct error *err);

/* Stores the results of joining durably. */
int node_home_save(struct node_home *home, X509 *certificate, const struct address *controller,
    const uint8_t pin[TLS_PIN_SIZE], struct error *err);

void node_home_close(struct node_home *home);
