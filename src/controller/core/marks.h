/* SPDX-License-Identifier: MIT */
/* Marks on GPUs and nodes; they survive restarts. */
#pragma once

#include "controller/core/core.h"

#define CORE_KEPT_FAULT "gpu-fault" // kind of the row of a fault

void core_set_mark(struct core *core, const struct cluster_change *change);  // or removes it
void core_make_mark(struct core *core, const struct cluster_change *change); // the same, and stores it
/* True if the node is held because the store is an older copy, until an administrator resumes it. */
bool core_is_held(const struct core_node *node);
/* True if an operator wants it released for a reset, or its node has already released it. NULL: no GPU. */
bool core_is_release_requested(const struct core_node *node, const struct core_gpu *gpu);
bool core_is_released(const struct core_node *node, const struct core_gpu *gpu);

/* Sets its own policy for external processes, or removes it: then it returns false. */
bool core_keep_policy(struct core *core, const struct cluster_change *change);

void core_keep_fault(struct core *core, const struct cluster_change *change);
bool core_end_fault(
    struct core *core, const struct core_node *node, struct core_gpu *gpu); // false: it had none

/* Adds a row for the store to the open batch. */
void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change);
