/* SPDX-License-Identifier: MIT */
/* What the lists show of the future, for a moment. */
#pragma once

#include "sched/forecast.h"

struct core;

struct outlook {
    int64_t made_ms; // 0: none was made
    uint64_t event;  // the last one when it was made
    struct forecast likely, latest;
};

void core_clear_outlook(struct core *core);
