/* SPDX-License-Identifier: MIT */
/* How long jobs that ended are kept: a sweep from time to time, which the store's thread does in small steps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct retention;

/* Sweeps by the controller's options, on its loop and in its store, until it is freed. */
/* `newest_ms`: the latest time in the store, 0 when there is none: the wall clock should not be much later.
 */
struct retention *retention_new(struct controller *controller, int64_t newest_ms);

/* True when the wall clock went more than a day further than the boot clock. */
bool retention_is_jump(int64_t wall_passed_ms, int64_t boot_passed_ms);
/* The options may be others now: the next sweep comes soon, or never if nothing is to leave. */
void retention_replan(struct retention *retention);

void retention_free(struct retention *retention); // before the store is closed; NULL is fine
