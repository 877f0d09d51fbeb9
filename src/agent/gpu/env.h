/* SPDX-License-Identifier: MIT */
/* Environment variables that tell the vendors' libraries which GPUs a job has. */
#pragma once

#include <stdbool.h>

#include "base/record.h"
#include "base/strings.h"

/*
 * Sets the variables of the vendor of the node's GPUs (`list`: struct gpu_state, NULL: unknown) to the grants
 * (struct gpu_grant). Without grants they are empty, which hides all GPUs. `is_guarded`: the job can open no
 * other GPU of the node.
 */
void gpu_env_set(
    const struct record_list *list, const struct record_list *grants, bool is_guarded, struct strings *env);
