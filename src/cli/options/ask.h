/* SPDX-License-Identifier: MIT */
/* What a job asks for, as people type it: one table for the options of run and submit and for `edit
 * KEY=VALUE`.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/api/client.h"

typedef int ask_read_fn(
    struct client *client, const char *what, const char *text, json_t **ret, struct error *err);

struct ask_key {
    const char *key;      // of the API
    const char *alias;    // another name for `edit`, or NULL
    const char *argument; // what a value looks like
    const char *help;
    ask_read_fn *read; // the value as the API wants it; `client` is asked only for names of jobs
};

/* The keys that can be edited, numbered from 0; false after the last one. */
bool ask_key(size_t i, struct ask_key *ret);

/* The key of that name or alias; false when there is none. */
bool ask_find(const char *name, struct ask_key *ret);

/* The value of that key in a request as one types it: "8G", "24h". The caller frees it. */
char *ask_text(const char *key, const json_t *request);

/* Reads `text` into the member `key` of `request`; `what` names the value in the sentence: "-g". */
int ask_set(json_t *request, struct client *client, const char *key, const char *what, const char *text,
    struct error *err);

/* Refuses options of run and submit that contradict each other, and adds what they say together. */
int ask_settle(json_t *request, struct error *err);
