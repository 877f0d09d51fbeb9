/* SPDX-License-Identifier: MIT */
/* Asks munged who created a credential, in a thread, so that the event loop does not wait. */
#pragma once

#include <event2/event.h>

#include "wire/munge.h"

struct munge_worker;

/* `claim` is NULL on error: -ENOKEY for an invalid credential, -ECOMM if munged does not answer. Both are
 * valid during the call. */
typedef void munge_answer_fn(void *arg, const struct munge_claim *claim, const struct error *err);

/* Starts its thread. `socket` as for munge_open(). */
int munge_worker_new(
    struct event_base *loop, const char *socket, struct munge_worker **ret, struct error *err);

/* Pending requests get a failure. NULL is allowed. */
void munge_worker_free(struct munge_worker *worker);

/* Answers in a later turn of the loop, within about a second. -ECOMM: too many requests are pending. */
int munge_worker_ask(struct munge_worker *worker, const char *credential, munge_answer_fn *on_answer,
    void *arg, struct error *err);
