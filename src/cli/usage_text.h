/* SPDX-License-Identifier: MIT */
/* What a job made of its GPUs, in words. `usage` is the API's object. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/list.h"

/* "91 % busy (peak 100 %), at most 18.2 of 24.0 GiB, 0.42 kWh"; NULL when nothing was measured. The caller
 * frees it. */
char *usage_sentence(const json_t *usage);

/* "uses GPU 0, which it was not given" and "has not used its GPUs for 42m", each when it is so, else NULL.
 * The caller frees them. */
char *usage_stray(const json_t *usage);
char *usage_idle(const json_t *usage, int64_t now_ms);

/* The timeline as rows of bars, one character per bucket; nothing without one. */
void usage_print_timeline(const struct screen *screen, const json_t *usage, FILE *out);
