/* SPDX-License-Identifier: MIT */
/* The body of `POST /jobs`: a job_spec in JSON, with its shorthands and defaults. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "job/spec.h"

/*
 * Reads a request into `spec`, which is overwritten and then owned by the caller (job_spec_clear), also after
 * a failure. Beyond the record's own form: "command" may be one string, run by /bin/sh -c; "gpus" may be 0.5,
 * "0.25" or "2:h200"; "after" may be a job or an array of such; and when "gpus" is missing it follows
 * "gpu_ids", or "nodes" and "gpus_per_node". Does not validate (job_spec_validate).
 */
int json_spec_read(json_t *value, struct job_spec *spec, struct error *err);

/*
 * Reads a change of a request over `ask`, with the same shorthands. A key that is missing changes nothing,
 * one that is null takes back what was asked for. After a failure `ask` is half changed: give it a copy. Does
 * not validate (job_ask_validate).
 */
int json_ask_read(json_t *value, struct job_ask *ask, struct error *err);
