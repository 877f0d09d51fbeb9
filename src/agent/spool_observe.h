/* SPDX-License-Identifier: MIT */
/* Observes an attempt by its spool entry and its cgroup. */
#pragma once

#include "agent/effects.h"

/* Completes `observed`, in which the caller has set is_watched and is_alive. The exit record is not read
 * again when it `is_reported`. */
void spool_observe(const struct effects_parts *parts, const struct spool_id *id, bool is_reported,
    struct attempt_observation *observed);

/* Fills in the numbers of the latest orders to a running attempt, and whether it is parked. */
void spool_recall(const struct effects_parts *parts, const struct spool_id *id, struct known_attempt *known);
