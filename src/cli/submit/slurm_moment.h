/* SPDX-License-Identifier: MIT */
/* Moments in Slurm's syntax. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "cli/term/when.h"

/* What a text that leaves out the day or the year means. */
enum slurm_tense {
    SLURM_AHEAD, // the next such time: --begin
    SLURM_PAST   // today's time, the last such day: sacct --starttime
};

/*
 * Parses "HH:MM[:SS] [AM|PM]", "today", "tomorrow", "midnight", "noon", "fika", "teatime", "elevenses",
 * "MMDD[YY]", "MM/DD[/YY]", "MM.DD[.YY]", "YYYY-MM-DD", a day together with a time in either order
 * ("11/27-23:00", "2026-11-27T23:00", "tomorrow noon"), "now[+-]COUNT[UNIT]" and "utsSECONDS" into
 * milliseconds since 1970. A day without a time is its start. What Slurm does not know is read as mgpu does:
 * "Fri 18:00", "+2h", RFC 3339. `what` names the option in messages.
 */
int slurm_parse_moment(const char *what, const char *text, enum slurm_tense tense, int64_t now_ms,
    const struct when_zone *zone, int64_t *ret_ms, struct error *err);

/* "2026-11-22T10:00:00" in local time, `otherwise` for 0. The caller frees it. */
char *slurm_time_text(int64_t wall_ms, const char *otherwise);
