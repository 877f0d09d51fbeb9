/* SPDX-License-Identifier: MIT */
/* Approximate quantiles of many durations: counts in classes, each 1/32 wider than the previous one. */
#pragma once

#include <stdint.h>

#define SKETCH_CLASSES 1216

struct wait_sketch {
    uint64_t count;
    uint32_t classes[SKETCH_CLASSES];
};

void wait_sketch_add(struct wait_sketch *sketch, int64_t ms);

/* The duration that `percent` of them do not exceed, to within 2 %; 0 if there are none. */
int64_t wait_sketch_quantile(const struct wait_sketch *sketch, unsigned percent);
