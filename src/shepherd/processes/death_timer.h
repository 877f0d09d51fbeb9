/* SPDX-License-Identifier: MIT */
/* Kills a process that serves a step and belongs to the user, even if the user has stopped it, so no process
 * of a step outlives it for long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct death_timer {
    timer_t timer;
    bool is_open; // false: no timer could be created
};

void death_timer_open(struct death_timer *timer);

/* The kernel kills this process after `ms`, unless the timer is set again before that. */
void death_timer_set(const struct death_timer *timer, int64_t ms);
