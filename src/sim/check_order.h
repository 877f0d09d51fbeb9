/* SPDX-License-Identifier: MIT */
/* The order in which jobs wait where users have given their own ones priorities. */
#pragma once

#include "sim/check_world.h"

/*
 * 0, or -EPROTO with the two jobs that stand the wrong way round: a user's job of a higher own priority
 * stands before those of a lower one, and none stands before another user's job that came earlier, unless
 * that one waits for jobs that its own owner wants first.
 */
int order_check(const struct world *world, struct error *err);
