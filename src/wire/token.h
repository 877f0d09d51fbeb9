/* SPDX-License-Identifier: MIT */
/* API tokens: secrets that identify a user over TCP. Only their SHA-256 is stored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TOKEN_HASH_SIZE 32
#define TOKEN_SIZE      70 // "mgpu_", 64 hex digits, NUL

/* Creates a token from the kernel's random numbers, and its hash. */
int token_make(char token[TOKEN_SIZE], uint8_t hash[TOKEN_HASH_SIZE], struct error *err);

/* The hash of a token sent by a client; false if it does not have the form of a token. */
bool token_hash(const char *token, uint8_t hash[TOKEN_HASH_SIZE]);

/* The token in "Bearer TOKEN", or NULL if the header has another form. Points into `header`. */
const char *token_of_header(const char *header);

/* Compares in constant time. */
bool token_is_equal(const uint8_t a[TOKEN_HASH_SIZE], const uint8_t b[TOKEN_HASH_SIZE]);
