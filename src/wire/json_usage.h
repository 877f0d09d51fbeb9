/* SPDX-License-Identifier: MIT */
/* What a job made of its GPUs (job/usage.h) as the API shows it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "job/usage.h"

/* Null for NULL. `is_whole`: with the timeline and the last lines of the output, which only those see who may
 * read the log. Values that were not measured are null. The caller owns the result. */
json_t *json_usage_write(const struct job_usage *usage, bool is_whole);
