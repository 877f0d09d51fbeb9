/* SPDX-License-Identifier: MIT */
/* The body of `POST /jobs`: a job_spec in JSON, with shorthands and defaults. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "job/spec.h"
#include "wire/json_member.h"

/*
 * Reads a request into `spec`, which is overwritten and then owned by the caller (job_spec_clear), also after
 * a failure. In addition to the record's own form: "command" may be a string, run by /bin/sh -c; "gpus" may
 * be 0.5, "0.25" or "2:h200"; "after" may be a job or an array of jobs; a missing "gpus" is derived from
 * "gpu_ids", or from "nodes" and "gpus_per_node". Does not validate (job_spec_validate).
 */
int json_spec_read(json_t *value, struct job_spec *spec, struct error *err);

/*
 * Applies a change of a request to `ask`, with the same shorthands. A missing key changes nothing, null
 * resets the field. After a failure `ask` is partly changed: pass a copy. Does not validate
 * (job_ask_validate).
 */
int json_ask_read(json_t *value, struct job_ask *ask, struct error *err);

/* The members of a spec that `GET /jobs/ID` has for its owner. Its command is "argv". */
extern const struct json_table json_spec_table;
