/* SPDX-License-Identifier: MIT */
/* Waiting until the first of several jobs is over. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

#define WAIT_ANY_MAX 500U // jobs; each has a connection of its own

/* As job_end_await of job_end.h, of all these jobs at once; *ret_which is the one that *ret is. -E2BIG. */
int wait_any(struct call *call, const struct strings *jobs, int64_t deadline_ms, size_t *ret_which,
    json_t **ret, struct error *err);
