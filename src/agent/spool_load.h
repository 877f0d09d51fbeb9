/* SPDX-License-Identifier: MIT */
/* Loads the contents of the spool at the start of an agent. */
#pragma once

#include "agent/effects.h"

/* Loads every attempt in the spool into the core, and removes cgroups that belong to none. */
int spool_load(struct effects_parts *parts, struct agent_core *core, struct error *err);
