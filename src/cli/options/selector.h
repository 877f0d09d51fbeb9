/* SPDX-License-Identifier: MIT */
/* Which jobs a person means: 42, 42-45, 42.3, 42.0-9, an alias, a name, or @. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/api/client.h"

#define SELECTOR_JOBS_MAX 10000U // ids that one command may name

enum selector_kind { SELECT_ID, SELECT_RANGE, SELECT_ELEMENTS, SELECT_NEWEST, SELECT_ALIAS, SELECT_NAME };

struct selector {
    enum selector_kind kind;
    uint64_t first, last; // of a number (both the same) or a range; SELECT_ELEMENTS: indexes
    uint64_t array;       // SELECT_ELEMENTS: the job they belong to
    const char *name;     // SELECT_NAME, SELECT_ALIAS: the word itself
};

/* Reads one word, without asking anybody. -EINVAL for an empty one, -E2BIG for a range that is too long. */
int selector_parse(const char *word, struct selector *ret, struct error *err);

/*
 * The jobs of all words, each once, in the order written, as the API's paths take them: "42" or "42.3". Names
 * and @ ask the server: -ENOENT when nothing answers to them. Numbers and elements are believed; the members
 * of a range of jobs that do not exist are left out.
 */
int selector_resolve(
    struct client *client, int count, char *const *words, struct strings *ret, struct error *err);

/* The caller's user name, or his number when he has none. The caller frees it. */
char *selector_own_user(void);
