/* SPDX-License-Identifier: MIT */
/* Removal of old jobs: a periodic sweep that runs on the store's thread in small steps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct retention;

/* Sweeps according to the controller's options, on its loop and in its store, until freed. `newest_ms`: the
 * latest time in the store, 0 if there is none, to detect a wall clock that is far ahead. */
struct retention *retention_new(struct controller *controller, int64_t newest_ms);

/* True if the wall clock has advanced more than a day further than the boot clock. */
bool retention_is_jump(int64_t wall_passed_ms, int64_t boot_passed_ms);
/* The options may have changed: the next sweep comes soon, or never if nothing is to be removed. */
void retention_replan(struct retention *retention);

void retention_free(struct retention *retention); // to be called before the store is closed; NULL is allowed
