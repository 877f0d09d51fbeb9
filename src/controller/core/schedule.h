/* SPDX-License-Identifier: MIT */
/* What the scheduler decides, for the core as a whole. */
#pragma once

#include "sched/sched.h"

extern const struct sched_callbacks core_callbacks; // without `arg` and `unreserve`
