/* SPDX-License-Identifier: MIT */
/* What a job asks for, as people type it: one table for the options of run and submit and for `edit
 * KEY=VALUE`.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/api/client.h"

struct ask_key {
    const char *key;      // of the API
    const char *alias;    // another name for `edit`, or NULL
    const char *argument; // what a value looks like
    const char *help;
    /* The value as the API wants it; `client` is asked only for names of jobs. */
    int (*read)(struct client *client, const char *what, const char *text, json_t **ret, struct error *err);
};

/* Ended by a NULL key. */
extern const struct ask_key ask_keys[];

/* The key of that name or alias, or NULL. */
const struct ask_key *ask_find(const char *name);

/* The value of that key in a request as one types it: "8G", "24h". The caller frees it. */
char *ask_text(const char *key, const json_t *request);

/* Reads `text` into the member `key` of `request`; `what` names the value in the sentence: "-g". */
int ask_set(json_t *request, struct client *client, const char *key, const char *what, const char *text,
    struct error *err);

/* Refuses options of run and submit that contradict each other, and adds what they say together. */
int ask_settle(json_t *request, struct error *err);
