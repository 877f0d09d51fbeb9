/* SPDX-License-Identifier: MIT */
/* The core's clock, and the turn, during which the time does not change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;

struct core_clock {
    bool is_set, is_kept;
    bool has_stepped;       // forward, and the concerns have not been notified
    int64_t offset_ms;      // added to the boot clock
    int64_t kept_ms;        // offset_ms as stored
    int64_t lead_ms;        // ahead of the wall clock, at the last reading
    int64_t slowed_ms;      // boot clock: end of the period at half speed
    int64_t ahead_since_ms; // boot clock: since when the wall clock has been far ahead; 0: it is not
};

int64_t core_clock_read(struct core *core, int64_t boot_ms, int64_t wall_ms); // the core's time
void core_clock_keep(struct core *core);                                      // adds it to the open batch
void core_clock_load(struct core *core, const uint8_t *bytes, size_t length);

/* Begins an input: reads the clocks and first handles what is due. core->now_ms is then its time. */
void core_begin(struct core *core, int64_t boot_ms, int64_t wall_ms);
void core_pass_at(struct core *core, int64_t now_ms); // runs a pass of the scheduler, which ends the turn

/* The boot time at which the core's clock reaches `at_ms`. */
int64_t core_boot_at(const struct core *core, int64_t at_ms);
/* Arms the timer: core_timer() is called at that boot time, or earlier. */
void core_arm(struct core *core, int64_t boot_ms);
