/* SPDX-License-Identifier: MIT */
/* A node's description for the scheduler. */
#pragma once

#include "controller/core/core.h"

/* It is up: updates the scheduler if its hardware or state has changed. */
void core_node_changed(struct core *core, struct core_node *node);
/* The same after a sample of its GPUs, which the concerns process first. */
void core_sampled(struct core *core, struct core_node *node);
void core_node_down(struct core *core, struct core_node *node);
void core_forget_description(struct core_node *node);
/* It was removed: requests that only it could meet are refused. */
void core_node_removed(struct core *core, const char *name);
/* Keeps a node's hardware, so that requests for it are accepted even while it is down. */
void core_keep_size(struct core *core, const struct cluster_change *change);
