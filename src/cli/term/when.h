/* SPDX-License-Identifier: MIT */
/* Moments as people type them. Only absolute times leave this program. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/error.h"

/* How a moment and its date in a time zone belong together. */
struct when_zone {
    struct tm *(*split)(const time_t *when, struct tm *ret);
    time_t (*join)(struct tm *date);
};

extern const struct when_zone when_local, when_utc;

/*
 * Milliseconds since 1970 of "18:00" (the next one), "Fri 18:00", "tomorrow 9:00", "+2h", "now",
 * "2026-11-22", "2026-11-22 14:00" or RFC 3339 with an offset. What has no offset is meant in `zone`. `what`
 * names the value in the sentence: "--begin". A date or an hour that does not exist there is refused.
 */
int when_parse(const char *text, const char *what, int64_t now_ms, const struct when_zone *zone,
    int64_t *ret_ms, struct error *err);
