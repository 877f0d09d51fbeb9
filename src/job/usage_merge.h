/* SPDX-License-Identifier: MIT */
/* What the parts of an attempt made of their GPUs, as one. */
#pragma once

#include <stddef.h>

#include "job/usage.h"

/* What one part was given, and what it made of it: NULL when that is not known. */
struct usage_part {
    const struct job_usage *usage;
    size_t n_gpus;
};

/* NULL when nothing is known of any part; the caller frees it. Sums are summed, peaks are the highest, and
 * it is idle when every part that has GPUs is. The tail is left out: whose it is depends on the end. */
struct job_usage *job_usage_merge(const struct usage_part *parts, size_t count);
