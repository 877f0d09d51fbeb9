/* SPDX-License-Identifier: MIT */
/* The concerns of the core, in the order in which they are told; NULL is the last. */
#pragma once

#include "controller/core/concern.h"

extern const struct core_concern *const core_concerns[];
