/* SPDX-License-Identifier: MIT */
/* Chooses how the share of a GPU that a job requested is enforced on this node. */
#pragma once

#include "base/error.h"
#include "base/record.h"
#include "job/launch.h"
#include "job/share.h"
#include "job/spec.h"

/* The memory of a granted GPU; `gpus` are struct gpu_state. 0: unknown. */
uint64_t share_gpu_bytes(const struct record_list *gpus, const struct gpu_grant *grant);

/*
 * Sets share and share_why of `spec` from the request and the grants of `spec`; both stay NULL if nothing
 * is to be enforced. `ways` is what the node offers; `gpus` (struct gpu_state) are its GPUs. -ENOTSUP: the
 * requested kind is not available on these GPUs, or with "auto" none is.
 */
int share_choose(const struct share_ways *ways, const struct record_list *gpus, const struct job_spec *job,
    struct launch_spec *spec, struct error *err);
