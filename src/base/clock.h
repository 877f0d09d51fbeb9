/* SPDX-License-Identifier: MIT */
/* The two clocks: one to measure with, one to show. */
#pragma once

#include <stdint.h>

/* Milliseconds since boot, suspend included (CLOCK_BOOTTIME). The only clock that timers and limits use. */
int64_t clock_boot_ms(void);

/* The same in microseconds, to measure with. */
int64_t clock_boot_us(void);

/* Milliseconds since 1970 (CLOCK_REALTIME). Shown and stored; decisions of the controller are made in the
 * time of core/clock.c. */
int64_t clock_wall_ms(void);
