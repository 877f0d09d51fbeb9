/* SPDX-License-Identifier: MIT */
/* What the scheduler is told of a node. */
#pragma once

#include "controller/core/core.h"

/* It is up: tells the scheduler what it has, when that is something else than before. */
void core_node_changed(struct core *core, struct core_node *node);
/* The same after a sample of its GPUs, which the concerns see first. */
void core_sampled(struct core *core, struct core_node *node);
void core_node_down(struct core *core, struct core_node *node);
/* What a node has counts for what may be asked for, whether it is there or not. */
void core_keep_size(struct core *core, const struct cluster_change *change);
