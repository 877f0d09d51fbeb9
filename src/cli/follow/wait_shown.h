/* SPDX-License-Identifier: MIT */
/* Waits for a job, with the line of `run` on a terminal while it is queued. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"

/*
 * Waits until the job `id` (as in paths of the API) has one of these states, "running,done" of the API.
 * Ctrl-C leaves the job queued. -ETIME after the deadline (boot clock; JOB_END_FOR_EVER: none); the caller
 * owns *ret.
 */
int wait_shown(struct call *call, const char *id, const char *states, int64_t deadline_ms, json_t **ret,
    struct error *err);
