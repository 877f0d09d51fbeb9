/* SPDX-License-Identifier: MIT */
#include "lab/kit/growth.h"

#define QUARTERS 4U
#define HOUR_MS  3600000.0

struct quarter {
    double least, most, mean, mean_ms;
};

static struct quarter summarize(const struct growth_point *points, size_t count)
{
    struct quarter found = { .least = points[0].value, .most = points[0].value };
    for (size_t i = 0; i < count; i++) {
        double value = points[i].value;
        found.least = value < found.least ? value : found.least;
        found.most = value > found.most ? value : found.most;
        found.mean += value / (double)count;
        found.mean_ms += (double)points[i].at_ms / (double)count;
    }
    return found;
}

struct growth growth_judge(const struct growth_point *points, size_t count, double noise)
{
    size_t part = count / QUARTERS;
    if (count < GROWTH_LEAST)
        return (struct growth){ 0 };
    struct quarter before = summarize(&points[part], part), after = summarize(&points[count - part], part);
    double hours = (after.mean_ms - before.mean_ms) / HOUR_MS;
    return (struct growth){
        .is_growing = after.least > before.most + noise,
        .per_hour = hours > 0 ? (after.mean - before.mean) / hours : 0,
    };
}
