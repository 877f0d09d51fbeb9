/* SPDX-License-Identifier: MIT */
/* A time budget that refills at a constant rate. A caller without budget is served after all others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct allowance_rate {
    int64_t percent; // of the time that passes
    int64_t most_us; // that can be saved
    int64_t debt_us; // that can be owed
};

/* All zeros: at time 0, nothing was used and nothing saved. */
struct allowance {
    int64_t used;  // in hundredths of a microsecond; negative: saved
    int64_t at_us; // when
};

/* `now_us` is from a clock that never goes back. */
void allowance_spend(
    struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us, int64_t used_us);

bool allowance_is_left(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us);

/* Nothing more can be saved. */
bool allowance_is_full(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us);
