/* SPDX-License-Identifier: MIT */
#pragma once

#include "controller/controller.h"

/* True for the local node and for registered nodes; false for one that was removed, even if the core still
 * has it. */
bool gpus_is_shown(const struct controller *controller, const struct core_node *node);
