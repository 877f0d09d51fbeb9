/* SPDX-License-Identifier: MIT */
/* One thread of the agent's helper that measures GPUs stopped, as if the driver did not return for one GPU.
 */
#pragma once

#include <sys/types.h>

#include "lab/kit/kit.h"

struct helper_stop {
    pid_t pid, tid;
};

/* -EOPNOTSUPP with a sentence where that cannot be done: one GPU, or no right to trace a process. */
int helper_stop_begin(const struct kit *kit, struct helper_stop *stop, struct error *err);
void helper_stop_end(const struct helper_stop *stop);
