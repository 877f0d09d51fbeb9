/* SPDX-License-Identifier: MIT */
/* The answer of GET /jobs/ID/why. */
#pragma once

#include "controller/http/request.h"

/* `job` NULL: for a job that does not exist yet, with the request `ask`. `why` NULL: it is not waiting. */
json_t *why_write(
    struct serve *serve, const struct job *job, const struct job_ask *ask, const struct why *why);
