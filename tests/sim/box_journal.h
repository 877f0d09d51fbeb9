/* SPDX-License-Identifier: MIT */
/* The log of a box as `mgpu journal export` would write it, told to a second scheduler. */
#pragma once

#include "job/job.h"
#include "memory_store.h"
#include "tally.h"

/* NULL when it decides all the same; else the first difference, which the caller frees. `jobs` by index,
 * folded. Counts decisions, and adds what it reads to the digest. */
char *box_replay(const struct change *events, size_t count, struct job *const *jobs, struct tally *tally);
