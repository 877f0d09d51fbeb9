/* SPDX-License-Identifier: MIT */
/* Tokens: creating them, and identifying callers by them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct request;

/*
 * Identifies the sender of a request with an Authorization header, sets request->who and calls `next`;
 * answers 401 itself if the token is invalid. `next` may be called before this returns.
 */
void tokens_identify(struct request *request, const char *header, void (*next)(struct request *request));

/*
 * Looks for a valid token with this hash, TOKEN_HASH_SIZE long. When there is one, request->who becomes its
 * user. Calls `found`, maybe before this returns, which is to call `next`.
 */
void tokens_find(struct request *request, const uint8_t *hash,
    void (*found)(struct request *request, bool is_found, void (*next)(struct request *request)),
    void (*next)(struct request *request));

/* Ends the connections that a revoked token identified, but for that of `request`, which is asked anew. */
void tokens_end_connections(const struct request *request, uint64_t token);
