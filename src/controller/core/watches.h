/* SPDX-License-Identifier: MIT */
/* External usage of each GPU of a node. */
#pragma once

#include "controller/core/gpu_watch.h"

struct core_node;

struct gpu_watch *core_take_watch(struct core_node *node, const char *uuid); // created if new
void core_clear_watches(struct core_node *node);
