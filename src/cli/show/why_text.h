/* SPDX-License-Identifier: MIT */
/* Prints the answer of GET /jobs/ID/why. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/options/list.h"

/* The whole page. `job` is the job's object, or NULL for one not submitted (--dry-run). */
void why_print(const struct view *view, const json_t *job, const json_t *why, FILE *out);

/* Only the numbered reasons, the jobs ahead and the forecast. */
void why_print_reasons(const struct view *view, const json_t *why, FILE *out);

/* "2 GPUs (h200), 8.0 GiB on each, 4 CPUs": a job's request. The caller frees it. */
char *why_request(const json_t *job);

/* The codes of reasons, one line each with the meaning. */
void why_print_codes(FILE *out);
