/* SPDX-License-Identifier: MIT */
/* MGPU_AUTH=munge: authenticates each request to another machine with munged instead of a token. */
#pragma once

#include <stdbool.h>

#include "wire/http_client.h"

struct munge_auth;

/* Reads MGPU_AUTH: munge, or token (the default). */
int munge_auth_is_wanted(bool *ret, struct error *err);

/* Creates *auth if it is NULL, and uses it for each request of `http`, which must not outlive it. The first
 * request asks mgpud for its instance. */
int munge_auth_begin(struct munge_auth **auth, struct http_client *http, struct error *err);

/* NULL is allowed. */
void munge_auth_free(struct munge_auth *auth);
