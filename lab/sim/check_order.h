/* SPDX-License-Identifier: MIT */
/* Checks the order of waiting jobs where users have set own priorities. */
#pragma once

#include "lab/sim/check_world.h"

/*
 * 0, or -EPROTO with the two jobs in the wrong order: a user's job of a higher own priority must precede
 * those of a lower one, and no job may precede an earlier one of another user, unless that one waits for jobs
 * that its own user prefers.
 */
int order_check(const struct world *world, struct error *err);
