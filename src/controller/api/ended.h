/* SPDX-License-Identifier: MIT */
/* What the two forms of GET /history share: which jobs are meant, and how GPU time is written. */
#pragma once

#include <jansson.h>

#include "controller/http/request.h"
#include "store/store_ended.h"

/* Adds gpu_seconds, gpu_seconds_measured, gpu_seconds_used and gpu_seconds_wasted; the last two are null
 * where nothing was measured. */
void ended_write_gpu_time(json_t *object, int64_t held_ms, int64_t measured_ms, int64_t used_ms);

/* The answer with sums, for `by` in the query. */
void ended_sum(struct request *request, const struct ended_filter *filter, const char *by);
