/* SPDX-License-Identifier: MIT */
/* Job selectors: 42, 42-45, 42.3, 42.0-9, an alias, a name, or @. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/api/client.h"
#include "cli/options/job_name.h"

#define SELECTOR_JOBS_MAX 10000U // maximum number of ids in one command

enum selector_kind { SELECT_ID, SELECT_RANGE, SELECT_ELEMENTS, SELECT_NEWEST, SELECT_ALIAS, SELECT_NAME };

struct call;

struct selector {
    enum selector_kind kind;
    uint64_t first, last; // of a number (both the same) or a range; SELECT_ELEMENTS: indexes
    uint64_t array;       // SELECT_ELEMENTS: the job they belong to
    const char *name;     // SELECT_NAME, SELECT_ALIAS: the text itself
};

/* Parses one word without querying the server. -EINVAL for an empty one, -E2BIG for a range that is too
 * long. */
int selector_parse(const char *word, struct selector *ret, struct error *err);

/*
 * The jobs of all words, each once, in the order written, as in paths of the API: "42" or "42.3". Names and @
 * query the server: -ENOENT if nothing matches, -ENOTUNIQ if a name does not determine one job for this use
 * (cli/options/job_name.h). Numbers and elements are not checked; jobs of a range that do not exist are
 * omitted.
 */
int selector_resolve_by(struct client *client, enum job_name_use use, bool must_tell, int count,
    char *const *words, struct strings *ret, struct error *err);

/* The same with the use of the running verb. */
int selector_resolve(
    struct call *call, int count, char *const *words, struct strings *ret, struct error *err);

/* The caller's user name, or uid if it has none. The caller frees it. */
char *selector_own_user(void);
