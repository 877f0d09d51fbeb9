/* SPDX-License-Identifier: MIT */
/* Who looks at the terminals of jobs now. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct serve;

/* [{"user","read_only","since"}] of this job; the caller owns it. */
json_t *terminals_write_viewers(const struct serve *serve, uint64_t job);
