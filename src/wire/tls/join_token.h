/* SPDX-License-Identifier: MIT */
/* A join token: the controller's address, the key that identifies it, and a secret that is valid once. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/address.h"
#include "wire/tls/key.h"

#define JOIN_SECRET_SIZE     16
#define JOIN_HASH_SIZE       32
#define JOIN_TOKEN_TEXT_SIZE 77

struct join_token {
    uint64_t id;
    uint8_t secret[JOIN_SECRET_SIZE];
    uint8_t pin[TLS_PIN_SIZE]; // of the cluster's authority
};

/* The argument of --join: "HOST:PORT#TOKEN", or "A,B,C#TOKEN" of several controllers. */
struct join_ticket {
    struct address address; // the first
    char *all;              // "A,B,C"
    struct join_token token;
};

int join_secret_make(uint8_t secret[JOIN_SECRET_SIZE], uint8_t hash[JOIN_HASH_SIZE], struct error *err);
int join_secret_hash(const uint8_t secret[JOIN_SECRET_SIZE], uint8_t hash[JOIN_HASH_SIZE], struct error *err);

void join_token_write(const struct join_token *token, char text[JOIN_TOKEN_TEXT_SIZE]);
/* Errors distinguish a truncated token from other text. */
int join_token_read(const char *text, struct join_token *ret, struct error *err);

int join_ticket_read(const char *text, struct join_ticket *ret, struct error *err);
void join_ticket_clear(struct join_ticket *ticket);

/* "HOST:PORT#PIN", optionally after "https://": the API of another machine. */
int pinned_address_read(const char *text, struct address *ret, uint8_t pin[TLS_PIN_SIZE], struct error *err);
