/* SPDX-License-Identifier: MIT */
/* Tokens: creating them, and identifying callers by them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct error;
struct request;
struct serve;

/*
 * Identifies the sender of a request with an Authorization header, sets request->who and calls `next`;
 * answers 401 itself if the token is invalid. `next` may be called before this returns.
 */
void tokens_identify(struct request *request, const char *header, void (*next)(struct request *request));

/*
 * Looks for a valid token with this hash, TOKEN_HASH_SIZE long. If there is one, sets request->who to its
 * user. Calls `found`, possibly before this returns, which must call `next`.
 */
void tokens_find(struct request *request, const uint8_t *hash,
    void (*found)(struct request *request, bool is_found, void (*next)(struct request *request)),
    void (*next)(struct request *request));

/* Charges the store's work for a token, which is expensive, as requests of this user: 0, or -EUSERS. */
int tokens_charge(struct request *request, struct error *err);

/* Why store_add_token() did not add `what`; the result is that of the error. */
int tokens_refusal(int result, const char *what, struct error *err);

/* The names of these scopes, as an array. */
json_t *tokens_write_scopes(unsigned scopes);

/* Closes the connections whose token or session has expired, with their streams, because a running request is
 * not identified again. */
void tokens_end_expired(struct serve *serve);

/* Closes the connections that a revoked token identified, except that of `request`, which is identified
 * again. */
void tokens_end_connections(const struct request *request, uint64_t token);
