/* SPDX-License-Identifier: MIT */
/* Chooses how the share of a GPU that a job requested is enforced on this node. */
#pragma once

#include "base/error.h"
#include "base/record.h"
#include "job/ask.h"
#include "job/launch.h"
#include "job/share.h"

/*
 * Sets share and share_why of `spec` from the request and the grants of `spec`; both stay NULL if nothing
 * is to be enforced. `ways` is what the node offers; `gpus` (struct gpu_state) are its GPUs. -ENOTSUP: the
 * requested kind is not available on these GPUs, or with "auto" none is.
 */
int share_choose(const struct share_ways *ways, const struct record_list *gpus, const struct job_ask *ask,
    struct launch_spec *spec, struct error *err);
