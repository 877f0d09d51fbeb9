/* SPDX-License-Identifier: MIT */
/* Parses times as users type them, into absolute times. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/error.h"

/* Conversion between times and dates in a time zone. */
struct when_zone {
    struct tm *(*split)(const time_t *when, struct tm *ret);
    time_t (*join)(struct tm *date);
};

extern const struct when_zone when_local, when_utc;

/*
 * Parses "18:00" (the next one), "Fri 18:00", "tomorrow 9:00", "+2h", "now", "2026-11-22", "2026-11-22 14:00"
 * or RFC 3339 with an offset into milliseconds since 1970. Without an offset, `zone` applies. `what` names
 * the value in messages: "--begin". Dates and times that do not exist in the zone are rejected.
 */
int when_parse(const char *text, const char *what, int64_t now_ms, const struct when_zone *zone,
    int64_t *ret_ms, struct error *err);

/*
 * The same for a moment in the past: "18:00" is the last one, as is "Fri 18:00"; "today" and "yesterday"
 * begin at midnight. A duration is an age: "12h" is twelve hours before `now_ms`. Dates may be in the future.
 */
int when_parse_past(const char *text, const char *what, int64_t now_ms, const struct when_zone *zone,
    int64_t *ret_ms, struct error *err);
