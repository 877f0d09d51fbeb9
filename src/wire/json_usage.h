/* SPDX-License-Identifier: MIT */
/* The resource usage of a job (job/usage.h) in the API's form. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "job/usage.h"

/* Null for NULL. `is_whole`: with the timeline and the last lines of output, only for users who may read the
 * log. Values that were not measured are null. The caller owns the result. */
json_t *json_usage_write(const struct job_usage *usage, bool is_whole);
