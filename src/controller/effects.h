/* SPDX-License-Identifier: MIT */
/* The core's effects bound to the real parts: store, links, API, a timer of the loop. */
#pragma once

#include "controller/controller.h"

struct effects;

struct effects *effects_new(struct controller *controller, struct core_effects *ret_table);
void effects_free(struct effects *effects);
