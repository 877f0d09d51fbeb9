/* SPDX-License-Identifier: MIT */
/* Resource requests as users type them: one table for the options of run and submit and for `edit
 * KEY=VALUE`. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"

struct ask_key;

/* A value as it was typed. */
struct ask_value {
    const struct ask_key *key;
    const char *what; // the value in messages: "-g"
    const char *text;
    struct client *client; // only for names of jobs
};

typedef int ask_read_fn(const struct ask_value *typed, json_t **ret, struct error *err);

struct ask_key {
    const char *key;      // key of the API
    const char *alias;    // another name for `edit`, or NULL
    const char *argument; // syntax of the value
    const char *help;
    ask_read_fn *read;   // converts the value to the API's form
    int64_t least, most; // of a number
};

/* The keys that can be edited, numbered from 0; false after the last one. */
bool ask_key(size_t i, struct ask_key *ret);

/* The key with that name or alias; false if there is none. */
bool ask_find(const char *name, struct ask_key *ret);

/* The value of that key in a request, as it would be typed: "8G", "24h". The caller frees it. */
char *ask_text(const char *key, const json_t *request);

/* Parses `text` into the member `key` of `request`; `what` names the value in messages: "-g". */
int ask_set(json_t *request, struct client *client, const char *key, const char *what, const char *text,
    struct error *err);

/* Rejects contradicting options of run and submit, and derives values from combinations. */
int ask_resolve(json_t *request, struct error *err);
