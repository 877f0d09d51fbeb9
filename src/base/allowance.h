/* SPDX-License-Identifier: MIT */
/* Time that comes back at a constant rate. Who has used it up is not stopped: others come first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct allowance_rate {
    int64_t percent; // of the time that passes
    int64_t most_us; // that can be saved
    int64_t debt_us; // that can be owed
};

/* All zeros: nothing of it has been used, and nothing saved at the time 0. */
struct allowance {
    int64_t used;  // in hundredths of a microsecond; negative: saved
    int64_t at_us; // when
};

/* `now_us` is from a clock that never goes back. */
void allowance_spend(
    struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us, int64_t used_us);

bool allowance_is_left(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us);

/* All that can be saved has been saved. */
bool allowance_is_full(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us);
