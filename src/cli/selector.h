/* SPDX-License-Identifier: MIT */
/* Which jobs a person means: 42, 42-45, a name, or @. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/client.h"

#define SELECTOR_JOBS_MAX 10000U // ids that one command may name

enum selector_kind { SELECT_ID, SELECT_RANGE, SELECT_NEWEST, SELECT_NAME };

struct selector {
    enum selector_kind kind;
    uint64_t first, last; // of a number (both the same) or a range
    const char *name;     // SELECT_NAME: the word itself
};

struct job_ids {
    uint64_t *ids;
    size_t count;
};

/* Reads one word, without asking anybody. -EINVAL for an empty one, -E2BIG for a range that is too long. */
int selector_parse(const char *word, struct selector *ret, struct error *err);

/*
 * The ids of all words, each once, in the order written. Names and @ ask the server: -ENOENT when nothing
 * answers to them. Numbers are believed; the members of a range that do not exist are left out.
 */
int selector_resolve(
    struct client *client, int count, char *const *words, struct job_ids *ret, struct error *err);

/* The caller's user name, or his number when he has none. The caller frees it. */
char *selector_own_user(void);

void job_ids_add(struct job_ids *ids, uint64_t id);
void job_ids_clear(struct job_ids *ids);
