/* SPDX-License-Identifier: MIT */
#pragma once

#include "controller/controller.h"

/* One that was forgotten is not shown, whatever the core remembers. Our own is no registered one. */
bool gpus_is_shown(const struct controller *controller, const struct core_node *node);
