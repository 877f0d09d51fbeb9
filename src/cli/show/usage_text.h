/* SPDX-License-Identifier: MIT */
/* The resource usage of a job as text. `usage` is the API's object. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/options/list.h"

/* "91 % busy (peak 100 %), at most 18.2 of 24.0 GiB, 0.42 kWh"; NULL if not measured. The caller frees it. */
char *usage_sentence(const json_t *usage);

/* "12 GiB of GPU memory, enforced by mps (requested)"; NULL: its share is not enforced. The caller frees it.
 */
char *usage_share(const json_t *usage);

/* "uses 13.5 GiB of GPU memory, and its share is 12 GiB; ...", or NULL. The caller frees it. */
char *usage_excess(const json_t *usage);

/* "uses GPU 0, which it was not given", or NULL. The caller frees it. */
char *usage_stray(const json_t *usage);

/* For a job that leaves its GPUs unused: a mark for lists, "! idle 42m", once its owner was notified; and a
 * sentence with the consequence, from the first minute on. Else NULL. The caller frees them. */
char *usage_idle_mark(const struct screen *screen, const json_t *job);
char *usage_idle(const json_t *job);

/* GPUs that a job leaves unused while it uses others: "has not used GPU 1,3 for 42m". The caller frees it. */
char *usage_idle_gpus(const json_t *job);

/* A character of a bar graph, for 0 to 100. */
const char *usage_bar(const struct screen *screen, int64_t percent);

/* Prints the timeline as rows of bars, one character per bucket; nothing if there is none. */
void usage_print_timeline(const struct screen *screen, const json_t *usage, FILE *out);
