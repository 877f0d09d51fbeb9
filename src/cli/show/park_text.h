/* SPDX-License-Identifier: MIT */
/* Jobs that mgpud has parked by its own rule (mgpud --park auto), and GPUs that are due to them, in words. */
#pragma once

#include <jansson.h>

#include "cli/options/list.h"

/* "for job 42, back by 15:40", or with another cause "back by 15:40"; NULL: mgpud has not parked it by
 * itself. The caller frees it. */
char *park_text(const struct view *view, const json_t *job);

/* "due to job 43 at 15:40: ...", of a running job that cannot be parked; NULL: they are due to none. The
 * caller frees it. */
char *park_due_text(const struct view *view, const json_t *job);

/* The same of the parked job: "lent to job 45, ..."; NULL: they are not. */
char *park_lent_text(const json_t *job);

/* What parking means for a job, one row for each sentence: `show`, and the page of `top`, print all rows. */
struct park_fact {
    const char *label;
    char *(*text)(const struct view *view, const json_t *job); // NULL: does not apply. The caller frees it
};

extern const struct park_fact park_facts[]; // the last has no label
