/* SPDX-License-Identifier: MIT */
/* What an agent finds in the spool when it starts. */
#pragma once

#include "agent/effects.h"

/* Loads every attempt in the spool into the core, and removes cgroups that belong to none. */
int spool_load(struct effects_parts *parts, struct agent_core *core, struct error *err);
