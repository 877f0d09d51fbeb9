/* SPDX-License-Identifier: MIT */
/* What the samples of a node have shown of each of its GPUs. */
#pragma once

#include "controller/core/gpu_watch.h"

struct core_node;

struct gpu_watch *core_take_watch(struct core_node *node, const char *uuid); // made when it is new
void core_clear_watches(struct core_node *node);
