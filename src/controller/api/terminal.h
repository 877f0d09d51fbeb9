/* SPDX-License-Identifier: MIT */
/* Current viewers of job terminals. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct serve;

/* [{"user","read_only","since"}] for this job; the caller owns it. */
json_t *terminals_write_viewers(const struct serve *serve, uint64_t job);
