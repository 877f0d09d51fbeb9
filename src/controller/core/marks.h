/* SPDX-License-Identifier: MIT */
/* Marks on GPUs and nodes; they survive restarts. */
#pragma once

#include "controller/core/core.h"

#define CORE_KEPT_FAULT "gpu-fault" // kind of the row of a fault

void core_set_mark(struct core *core, const struct cluster_change *change);  // or removes it
void core_make_mark(struct core *core, const struct cluster_change *change); // the same, and stores it
void core_clear_marks(struct core *core);                                    // also policies and faults
/* True if the node is held because the store is an older copy, until an administrator resumes it. */
bool core_is_held(const struct core *core, const struct core_node *node);
/* True if an operator wants it released for a reset, or its node has already released it. */
bool core_is_release_wished(
    const struct core *core, const struct core_node *node, const struct gpu_state *gpu);
bool core_is_released(const struct core *core, const struct core_node *node, const struct gpu_state *gpu);

bool core_keep_policy(struct core *core, const struct cluster_change *change); // false: it has none any more

/* As core_fault(), without that of the GPU that an instance is part of. */
const struct cluster_change *core_own_fault(const struct core *core, const char *node, const char *uuid);
void core_keep_fault(struct core *core, const struct cluster_change *change);
bool core_end_fault(struct core *core, const char *node, const char *uuid); // false: it had none

/* Adds a row for the store to the open batch. */
void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change);
