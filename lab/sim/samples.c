/* SPDX-License-Identifier: MIT */
/* Quantiles are values that occurred, never interpolated ones, so that they are comparable to the last
 * digit. */
#include "lab/sim/samples.h"

#include "base/memory.h"

void samples_add(struct samples *samples, double value)
{
    if (samples->count == samples->room) {
        samples->room = samples->room == 0 ? 64 : samples->room * 2;
        samples->values = xreallocarray(samples->values, samples->room, sizeof(double));
    }
    samples->values[samples->count++] = value;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double quantile(const struct samples *samples, double fraction)
{
    size_t at = (size_t)(fraction * (double)samples->count);
    return samples->values[at < samples->count ? at : samples->count - 1];
}

void samples_summarize(struct samples *samples, struct summary *ret)
{
    *ret = (struct summary){ .count = samples->count };
    if (samples->count == 0)
        return;
    double sum = 0; // in the order of the samples, before they are sorted
    for (size_t i = 0; i < samples->count; i++)
        sum += samples->values[i];
    qsort(samples->values, samples->count, sizeof(double), compare);
    ret->mean = sum / (double)samples->count;
    ret->median = quantile(samples, 0.5);
    ret->p90 = quantile(samples, 0.9);
    ret->p99 = quantile(samples, 0.99);
    ret->max = samples->values[samples->count - 1];
}

void samples_clear(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){ 0 };
}
