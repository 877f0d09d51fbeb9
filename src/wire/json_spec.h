/* SPDX-License-Identifier: MIT */
/* The body of `POST /jobs`: a job_spec in JSON, with its shorthands and defaults. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "job/spec.h"

/*
 * Reads a request into `spec`, which is overwritten and then owned by the caller (job_spec_clear), also after
 * a failure. Beyond the record's own form: "command" may be one string, run by /bin/sh -c, and "gpus" follows
 * "gpu_ids" when only those are given. Does not validate (job_spec_validate).
 */
int json_spec_read(json_t *value, struct job_spec *spec, struct error *err);
