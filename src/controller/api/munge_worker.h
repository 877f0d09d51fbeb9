/* SPDX-License-Identifier: MIT */
/* Asks munged who made a credential, without keeping the loop waiting. */
#pragma once

#include <event2/event.h>

#include "wire/munge.h"

struct munge_worker;

/* `claim` is NULL with an error: -ENOKEY for one that is not good, -ECOMM without an answer. Both are good
 * during the call. */
typedef void munge_answer_fn(void *arg, const struct munge_claim *claim, const struct error *err);

/* Starts its thread. `socket` as for munge_open(). */
int munge_worker_new(
    struct event_base *loop, const char *socket, struct munge_worker **ret, struct error *err);

/* Questions that are open are answered with a failure. Safe on NULL. */
void munge_worker_free(struct munge_worker *worker);

/* Answers in a later turn of the loop, within a second or so. -ECOMM: too many wait already. */
int munge_worker_ask(struct munge_worker *worker, const char *credential, munge_answer_fn *on_answer,
    void *arg, struct error *err);
