/* SPDX-License-Identifier: MIT */
/* The answer to "why does it wait?". */
#pragma once

#include "controller/http/request.h"

/* `job` NULL: of a job that does not exist yet, which asks for `ask`. `why` NULL: it does not wait. */
json_t *why_write(
    struct serve *serve, const struct job *job, const struct job_ask *ask, const struct why *why);
