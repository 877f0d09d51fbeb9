/* SPDX-License-Identifier: MIT */
/* What has been said of single GPUs and nodes, and outlives restarts. */
#pragma once

#include "controller/core/core.h"

#define CORE_KEPT_FAULT "gpu-fault" // kind of the row of a fault

void core_set_mark(struct core *core, const struct cluster_change *change);  // or takes it away
void core_make_mark(struct core *core, const struct cluster_change *change); // and makes it durable
void core_clear_marks(struct core *core);                                    // and policies and faults
/* The node is held because the store is an older copy, until an administrator resumes it. */
bool core_is_held(const struct core *core, const struct core_node *node);
/* Operators want it released, so that it can be reset; or its node has released it already. */
bool core_is_release_wished(
    const struct core *core, const struct core_node *node, const struct gpu_state *gpu);
bool core_is_released(const struct core *core, const struct core_node *node, const struct gpu_state *gpu);

bool core_keep_policy(struct core *core, const struct cluster_change *change); // false: it has none now

void core_keep_fault(struct core *core, const struct cluster_change *change);
bool core_end_fault(struct core *core, const char *node, const char *uuid); // false: it had none

/* A row of the store, in the open batch. */
void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change);
