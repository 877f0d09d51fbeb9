/* SPDX-License-Identifier: MIT */
/* The concerns of the core, in the order of their calls; terminated by NULL. */
#pragma once

#include "controller/core/concern.h"

extern const struct core_concern *const core_concerns[];
