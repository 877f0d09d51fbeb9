/* SPDX-License-Identifier: MIT */
/* The two clocks: one to measure with, one to show. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Milliseconds since boot, suspend included (CLOCK_BOOTTIME). The only clock that timers and limits use. */
int64_t clock_boot_ms(void);

/* Milliseconds since 1970 (CLOCK_REALTIME). Shown and stored; decisions of the controller are made in the
 * time of core/clock.c. */
int64_t clock_wall_ms(void);

/* RFC 3339 in UTC with milliseconds: 2026-11-21T06:30:00.000Z. */
void clock_format_utc(int64_t wall_ms, char *text, size_t size);
