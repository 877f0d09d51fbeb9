/* SPDX-License-Identifier: MIT */
/* The two clocks: boot time for measuring, wall time for display. */
#pragma once

#include <stdint.h>

/* Milliseconds since boot, suspend included (CLOCK_BOOTTIME). The only clock that timers and limits use. */
int64_t clock_boot_ms(void);

/* The same in microseconds, for measuring. */
int64_t clock_boot_us(void);

/* Milliseconds since 1970 (CLOCK_REALTIME), for display and storage. The controller's decisions use the time
 * of core/clock.c instead. */
int64_t clock_wall_ms(void);
