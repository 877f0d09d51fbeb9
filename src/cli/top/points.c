/* SPDX-License-Identifier: MIT */
/* If a time has a value for only one GPU, that value is used. */
#include "cli/top/points.h"

#include <string.h>

#include "base/memory.h"
#include "cli/top/graph.h"
#include "cli/top/jobs.h"

/* Adds the values of one GPU; returns its number of points. */
static size_t add(const json_t *gpu, const char *name, double *sums, unsigned *known)
{
    const json_t *values = json_object_get(gpu, name);
    size_t count = json_array_size(values);
    count = count > POINTS_MAX ? POINTS_MAX : count;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(values, i);
        if (!json_is_number(value))
            continue;
        sums[i] += json_number_value(value);
        known[i]++;
    }
    return count;
}

size_t points_of_gpus(const json_t *job, const json_t *past, const char *name, double points[POINTS_MAX])
{
    _cleanup_free_ unsigned *known = xcalloc(POINTS_MAX, sizeof(unsigned));
    size_t index = 0, count = 0;
    json_t *gpu = NULL;
    memset(points, 0, POINTS_MAX * sizeof(double));
    json_array_foreach(json_object_get(past, "gpus"), index, gpu)
    {
        size_t here = top_job_has_gpu(job, gpu) ? add(gpu, name, points, known) : 0;
        count = here > count ? here : count;
    }
    for (size_t i = 0; i < count; i++)
        points[i] = known[i] > 0 ? points[i] / known[i] : GRAPH_UNKNOWN;
    return count;
}

size_t points_of_usage(const json_t *usage, size_t column, double points[POINTS_MAX])
{
    const json_t *timeline = json_object_get(usage, "timeline");
    size_t count = json_array_size(timeline);
    count = count > POINTS_MAX ? POINTS_MAX : count;
    for (size_t i = 0; i < count; i++) {
        const json_t *percent = json_array_get(json_array_get(timeline, i), column);
        points[i] = json_is_number(percent) ? json_number_value(percent) / 100 : GRAPH_UNKNOWN;
    }
    return count;
}

double points_peak(const double *points, size_t count)
{
    double peak = 0;
    for (size_t i = 0; i < count; i++)
        peak = points[i] > peak ? points[i] : peak;
    return peak;
}
