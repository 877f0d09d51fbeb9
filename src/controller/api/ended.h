/* SPDX-License-Identifier: MIT */
/* Shared by both forms of GET /history: the filter of jobs, and how GPU time is written. */
#pragma once

#include <jansson.h>

#include "controller/http/request.h"
#include "store/store_ended.h"

/* Adds gpu_seconds, gpu_seconds_measured, gpu_seconds_used and gpu_seconds_wasted; the last two are null if
 * nothing was measured. */
void ended_write_gpu_time(json_t *object, int64_t held_ms, int64_t measured_ms, int64_t used_ms);

/* Answers with totals, for `by` in the query. */
void ended_sum(struct request *request, const struct ended_filter *filter, const char *by);
