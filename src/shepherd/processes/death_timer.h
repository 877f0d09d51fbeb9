/* SPDX-License-Identifier: MIT */
/* Ends a process of the user that serves a step and that the user has stopped: the kernel kills it, so
 * nothing of a step outlives it for long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct death_timer {
    timer_t timer;
    bool is_open; // false: none could be had
};

void death_timer_open(struct death_timer *timer);

/* This process is killed after `ms`, unless it is set again before. */
void death_timer_set(const struct death_timer *timer, int64_t ms);
