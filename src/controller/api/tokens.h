/* SPDX-License-Identifier: MIT */
/* Tokens: making them, and who stands behind one that a request carries. */
#pragma once

struct request;

/*
 * Finds out who sends a request with an Authorization header, sets request->who and calls `next`; answers 401
 * itself when the token is not good. `next` may be called before this returns.
 */
void tokens_identify(struct request *request, const char *header, void (*next)(struct request *request));
