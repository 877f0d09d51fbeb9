/* SPDX-License-Identifier: MIT */
/* Histograms of durations for GET /metrics. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BOUNDS_MAX 16U

/* Upper bounds in seconds, ascending. */
struct histogram_scale {
    size_t count;
    double bounds[HISTOGRAM_BOUNDS_MAX];
};

extern const struct histogram_scale histogram_of_work;  // 100 us to 10 s: for operations of a program
extern const struct histogram_scale histogram_of_turns; // 500 us to 5 s: for turns of an event loop
extern const struct histogram_scale histogram_of_jobs;  // 1 s to 7 days: for waiting and run times of jobs

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; // up to each bound; the last one counts longer durations
    double sum;
};

/* A negative duration counts as 0. */
void histogram_add(struct histogram *histogram, const struct histogram_scale *scale, double seconds);
