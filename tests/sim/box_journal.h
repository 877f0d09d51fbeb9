/* SPDX-License-Identifier: MIT */
/* The log of a box as `mgpu journal export` would write it, told to a second scheduler. */
#pragma once

#include "job/job.h"
#include "memory_store.h"

/* NULL when it decides all the same; else the first difference, which the caller frees. `jobs` by id, folded.
 */
char *box_replay(const struct change *events, size_t count, struct job *const *jobs, size_t *decisions);
