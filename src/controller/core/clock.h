/* SPDX-License-Identifier: MIT */
/* The time of the core, and the turn in which everything has one time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;

struct core_clock {
    bool is_set, is_kept;
    bool has_stepped;       // forward, and the concerns have not been told
    int64_t offset_ms;      // to the boot clock
    int64_t kept_ms;        // the same as the store has it
    int64_t lead_ms;        // before the wall clock, when it was read last
    int64_t slowed_ms;      // boot clock: up to here it ran at half speed
    int64_t ahead_since_ms; // boot clock: since when the wall clock is well ahead; 0: it is not
};

int64_t core_clock_read(struct core *core, int64_t boot_ms, int64_t wall_ms); // the time of the core
void core_clock_keep(struct core *core);                                      // in the open batch
void core_clock_load(struct core *core, const uint8_t *bytes, size_t length);

/* Something happens: takes the clocks, and does first what was due before. Then core->now_ms is the time of
 * it. */
void core_begin(struct core *core, int64_t boot_ms, int64_t wall_ms);
void core_pass_at(struct core *core, int64_t now_ms); // a pass of the scheduler, which ends the turn
/* The time for a look that changes nothing. */
int64_t core_look_ms(const struct core *core, int64_t wall_ms);

/* When the core's time will be that, by the boot clock. */
int64_t core_boot_at(const struct core *core, int64_t at_ms);
/* Asks for core_timer() at that time of the boot clock, or earlier. */
void core_arm(struct core *core, int64_t boot_ms);
