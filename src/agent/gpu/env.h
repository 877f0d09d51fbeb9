/* SPDX-License-Identifier: MIT */
/* How a job is told which GPUs are its own: the variables that the vendors' libraries obey. */
#pragma once

#include <stdbool.h>

#include "base/record.h"
#include "base/strings.h"

/*
 * Sets the variables of the vendor whose GPUs the node has (`gpus`: struct gpu_state, NULL: not known) to the
 * grants (struct gpu_grant). With no grants they are empty, which hides all GPUs. `is_guarded`: the job can
 * open no other GPU of the node.
 */
void gpu_env_set(
    const struct record_list *gpus, const struct record_list *grants, bool is_guarded, struct strings *env);
