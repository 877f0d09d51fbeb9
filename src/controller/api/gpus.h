/* SPDX-License-Identifier: MIT */
#pragma once

#include "controller/controller.h"
#include "wire/gpu_comparison.h"

/* True for the local node and for registered nodes; false for one that was removed, even if the core still
 * has it. */
bool gpus_is_shown(const struct controller *controller, const struct core_node *node);
/* True unless it is a MIG instance that does not exist any more and has no jobs. */
bool gpus_is_listed(
    const struct controller *controller, const struct core_node *node, const struct gpu_state *gpu);

/* The tests of all GPUs, to compare one with. The caller frees it. */
struct gpu_comparison *gpus_comparison(const struct core *core);
