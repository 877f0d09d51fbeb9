/* SPDX-License-Identifier: MIT */
/* MUNGE: a daemon on each machine of a site certifies the identity of local callers, with a shared key. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define MUNGE_SCHEME "MUNGE "

struct munge;

/* The identity certified by a credential. */
struct munge_claim {
    uint32_t uid, gid;
    char *payload;
};

/* Loads libmunge. `socket` is munged's, NULL: the default. -ENOENT: not installed. */
int munge_open(const char *socket, struct munge **ret, struct error *err);
void munge_free(struct munge *munge);

/* The payload of a credential for one request, valid only for that request to that mgpud. The caller frees
 * it. */
char *munge_payload(const char *instance, const char *method, const char *target);

/* Blocks until munged has answered. The caller frees the result. */
int munge_encode(struct munge *munge, const char *payload, char **ret_credential, struct error *err);

/* libmunge's result for a credential: its error, 0 for none, with its text; else the payload and the
 * identity. */
struct munge_answer {
    int error;
    const char *reason;
    const void *payload;
    int length;
    uint32_t uid, gid;
};

/* -ENOKEY, -ECOMM: as munge_decode(). The caller frees the payload of a claim. */
int munge_read_answer(const struct munge_answer *answer, struct munge_claim *ret_claim, struct error *err);

/* Blocks. -ENOKEY: the credential is forged, expired, or was used before. -ECOMM: munged does not respond. */
int munge_decode(
    struct munge *munge, const char *credential, struct munge_claim *ret_claim, struct error *err);
