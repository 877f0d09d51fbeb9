/* SPDX-License-Identifier: MIT */
/* Parses times of the API and formats them for display. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum time_style { TIME_LOCAL, TIME_ZULU, TIME_ISO };

/* Milliseconds since 1970 of an RFC 3339 time in UTC, 0 if invalid. */
int64_t time_parse(const char *text);

/* "14:20:05", "Fri 14:20" or "2026-11-21 14:20", the shortest that is unambiguous; in full for TIME_ISO. */
void time_format(int64_t wall_ms, int64_t now_ms, enum time_style style, char *text, size_t size);

/* The same without seconds, for approximate times; without the day too if it is less than 12 hours ahead. */
void time_format_short(int64_t wall_ms, int64_t now_ms, enum time_style style, char *text, size_t size);

/* "2026-11-21 14:20" in any case, for columns in which days are compared; in full for TIME_ISO. */
void time_format_date(int64_t wall_ms, enum time_style style, char *text, size_t size);
