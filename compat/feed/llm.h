/* SPDX-License-Identifier: MIT */
/* llm_config.json: the GPU fraction that each model needs, and the model named in a job's arguments. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"

#define FEED_REQUIREMENT_MAX 1024.0 // GPUs

struct feed_llm {
    double standard; // for a job without a known model
    json_t *models;  // name to number
};

/* Called with errors about values that are skipped. */
typedef void feed_report_fn(void *arg, const struct error *err);

/* Parses the configuration; `path` is for messages. -EINVAL with file and line if it is invalid; *ret is then
 * unchanged. Single invalid values are reported and skipped. */
int feed_llm_parse(const char *text, size_t length, const char *path, feed_report_fn *report, void *arg,
    struct feed_llm *ret, struct error *err);

/* The requirement of a job with these arguments: --llm NAME or --llm=NAME. *ret_unknown is the name if the
 * configuration does not contain it, else NULL. */
double feed_llm_requirement(
    const struct feed_llm *llm, const struct strings *arguments, const char **ret_unknown);

/* The value of the last `--NAME VALUE` or `--NAME=VALUE`, or NULL. Owned by the arguments. */
const char *feed_find_argument(const struct strings *arguments, const char *option);

void feed_llm_clear(struct feed_llm *llm);
