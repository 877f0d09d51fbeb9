/* SPDX-License-Identifier: MIT */
/* The members of a job's object about its being parked, and about a start before it had its GPUs. */
#pragma once

#include "wire/json_job.h"

json_t *json_early_park(const struct json_job_view *view);      // the phase; "early"
json_t *json_early_parked_at(const struct json_job_view *view); // not of one that has started early
json_t *json_early_parked_s(const struct json_job_view *view);
json_t *json_early_seconds(const struct json_job_view *view); // without its GPUs
json_t *json_early_gpus_at(const struct json_job_view *view); // when it was given them
json_t *json_early_start(const struct json_job_view *view);   // whether it will start so, and why
json_t *json_early_saved(const struct json_job_view *view);   // seconds that the GPUs were spared
