/* SPDX-License-Identifier: MIT */
/* Merges the usage of the ranks of an attempt. */
#pragma once

#include <stddef.h>

#include "job/usage.h"

/* The grants and the usage of one rank; NULL if unknown. */
struct usage_part {
    const struct job_usage *usage;
    size_t n_gpus;
};

/* NULL if no usage is known; the caller frees it. Totals are added, peaks are the maximum, and the result is
 * idle if every rank with GPUs is. The tail is left out: which one applies depends on the end. */
struct job_usage *job_usage_merge(const struct usage_part *parts, size_t count);
