/* SPDX-License-Identifier: MIT */
/* Waits until the first of several jobs has ended. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

#define WAIT_ANY_MAX 500U // jobs; each needs a connection

/* Like job_end_await of job_end.h for all these jobs at once; *ret_which is the index of *ret. -E2BIG. */
int wait_any(struct call *call, const struct strings *jobs, int64_t deadline_ms, size_t *ret_which,
    json_t **ret, struct error *err);
