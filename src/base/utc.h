/* SPDX-License-Identifier: MIT */
/* Timestamps as text. Does not read a clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* RFC 3339 in UTC with milliseconds: 2026-11-21T06:30:00.000Z. */
void utc_format(int64_t wall_ms, char *text, size_t size);
