/* SPDX-License-Identifier: MIT */
/* llm_config.json: how much of a GPU each model needs, and which model a job's arguments name. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"

#define FEED_REQUIREMENT_MAX 1024.0 // GPUs

struct feed_llm {
    double standard; // of a job that names no model that is known
    json_t *models;  // name to number
};

/* Told of what is wrong with a part that is left out. */
typedef void feed_report_fn(void *arg, const struct error *err);

/* The configuration in this text; `path` is for sentences. -EINVAL with file and line when it is none: *ret
 * is then untouched. Single values that are wrong are reported and left out. */
int feed_llm_parse(const char *text, size_t length, const char *path, feed_report_fn *report, void *arg,
    struct feed_llm *ret, struct error *err);

/* How much a job with these arguments needs: --llm NAME or --llm=NAME. *ret_unknown is the name when the
 * configuration does not have it, else NULL. */
double feed_llm_requirement(
    const struct feed_llm *llm, const struct strings *arguments, const char **ret_unknown);

/* The value of the last `--NAME VALUE` or `--NAME=VALUE`, or NULL. Owned by the arguments. */
const char *feed_find_argument(const struct strings *arguments, const char *option);

void feed_llm_clear(struct feed_llm *llm);
