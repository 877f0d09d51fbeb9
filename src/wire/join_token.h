/* SPDX-License-Identifier: MIT */
/* What lets one more machine join: where to dial, whom to believe there, and a secret that is good once. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/address.h"
#include "wire/tls_key.h"

#define JOIN_SECRET_SIZE     16
#define JOIN_HASH_SIZE       32
#define JOIN_TOKEN_TEXT_SIZE 77

struct join_token {
    uint64_t id;
    uint8_t secret[JOIN_SECRET_SIZE];
    uint8_t pin[TLS_PIN_SIZE]; // of the cluster's authority
};

/* What to type behind --join: "HOST:PORT#TOKEN". */
struct join_ticket {
    struct address address;
    struct join_token token;
};

int join_secret_make(uint8_t secret[JOIN_SECRET_SIZE], uint8_t hash[JOIN_HASH_SIZE], struct error *err);
int join_secret_hash(const uint8_t secret[JOIN_SECRET_SIZE], uint8_t hash[JOIN_HASH_SIZE], struct error *err);

void join_token_write(const struct join_token *token, char text[JOIN_TOKEN_TEXT_SIZE]);
/* Says whether a text is cut short or no token at all. */
int join_token_read(const char *text, struct join_token *ret, struct error *err);

int join_ticket_read(const char *text, struct join_ticket *ret, struct error *err);
void join_ticket_clear(struct join_ticket *ticket);

/* "HOST:PORT#PIN", after "https://" or without: an API of another machine. */
int pinned_address_read(const char *text, struct address *ret, uint8_t pin[TLS_PIN_SIZE], struct error *err);
