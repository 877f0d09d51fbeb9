/* SPDX-License-Identifier: MIT */
/* MUNGE: a daemon on each machine of a site vouches for who its callers are, with a key that they share. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define MUNGE_SCHEME "MUNGE "

struct munge;

/* What a credential says of who made it. */
struct munge_claim {
    uint32_t uid, gid;
    char *payload;
};

/* Loads libmunge. `socket` is munged's, NULL: the usual one. -ENOENT: it is not installed. */
int munge_open(const char *socket, struct munge **ret, struct error *err);
void munge_free(struct munge *munge);

/* What a credential for one request holds, and nothing else: it is good for that request to that mgpud alone.
 * The caller frees it. */
char *munge_payload(const char *instance, const char *method, const char *target);

/* Blocks until munged has answered. The caller frees what is returned. */
int munge_encode(struct munge *munge, const char *payload, char **ret_credential, struct error *err);

/* Blocks. -ENOKEY: a credential that is forged, expired, or was seen before. -ECOMM: munged does not answer.
 */
int munge_decode(
    struct munge *munge, const char *credential, struct munge_claim *ret_claim, struct error *err);
