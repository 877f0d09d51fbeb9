/* SPDX-License-Identifier: MIT */
/* The members of a job's object about parking and early starts. */
#pragma once

#include "wire/json_job.h"

json_t *json_early_park(const struct json_job_view *view);      // the phase; "early"
json_t *json_early_parked_at(const struct json_job_view *view); // not for one that has started early
json_t *json_early_parked_s(const struct json_job_view *view);
json_t *json_early_seconds(const struct json_job_view *view); // without its GPUs
