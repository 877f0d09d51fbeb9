/* SPDX-License-Identifier: MIT */
/* A growing list of numbers, and its quantiles as the reference simulators define them. */
#pragma once

#include <stddef.h>

struct samples {
    double *values;
    size_t count, room;
};

struct summary {
    size_t count;
    double mean, median, p90, p99, max; // 0 without values
};

void samples_add(struct samples *samples, double value);
/* Sorts it. A quantile f is the value at position min(n - 1, floor(f * n)) of the sorted values. */
void samples_summarize(struct samples *samples, struct summary *ret);
void samples_clear(struct samples *samples);
