/* SPDX-License-Identifier: MIT */
/* MGPU_AUTH=munge: munged vouches for each request to another machine, in the place of a token. */
#pragma once

#include <stdbool.h>

#include "wire/http_client.h"

struct munge_auth;

/* Reads MGPU_AUTH: munge, or token, which is the usual one. */
int munge_auth_is_wanted(bool *ret, struct error *err);

/* Makes *vouch when it is NULL, and has it asked before each request of `http`, which must not outlive it.
 * The first time it asks mgpud which one it is. */
int munge_auth_begin(struct munge_auth **vouch, struct http_client *http, struct error *err);

/* Safe on NULL. */
void munge_auth_free(struct munge_auth *vouch);
