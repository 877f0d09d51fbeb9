/* SPDX-License-Identifier: MIT */
/* Moves this process into the cgroups of a step. */
#pragma once

#include "base/error.h"
#include "job/launch.h"

/* Requires root, or cgroups delegated to this user. No effect where steps have no cgroups. */
int enter_cgroups(const struct launch_spec *spec, struct error *err);
