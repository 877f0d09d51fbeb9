/* SPDX-License-Identifier: MIT */
/* Implements the core's effects with the store, links, API and a timer of the event loop. */
#pragma once

#include "controller/controller.h"

struct effects;

struct effects *effects_new(struct controller *controller, struct core_effects *ret_table);
void effects_free(struct effects *effects);
