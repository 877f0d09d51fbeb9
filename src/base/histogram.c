/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"

const struct histogram_scale histogram_of_work = { 11,
    { 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10 } };

const struct histogram_scale histogram_of_turns = { 12,
    { 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5 } };

const struct histogram_scale histogram_of_jobs = { 13,
    { 1, 5, 15, 60, 300, 900, 3600, 14400, 43200, 86400, 172800, 345600, 604800 } };

void histogram_add(struct histogram *histogram, const struct histogram_scale *scale, double seconds)
{
    size_t i = 0;
    double counted = seconds > 0 ? seconds : 0;
    while (i < scale->count && counted > scale->bounds[i])
        i++;
    histogram->counts[i]++;
    histogram->sum += counted;
}
