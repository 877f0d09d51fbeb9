/* SPDX-License-Identifier: MIT */
/* Whether a figure that is measured again and again grows, as one does of which something is not given back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROWTH_LEAST 8U // measurements

struct growth_point {
    int64_t at_ms;
    double value;
};

struct growth {
    bool is_growing;
    double per_hour; // of the figure, whether it grows or not
};

/* Judges measurements in the order of their times. The first quarter is left out: programs take what they
 * need when they first do something. A figure grows if its least in the last quarter is above its most in the
 * second one, by more than `noise`: one that goes up and down does not. With fewer than GROWTH_LEAST
 * measurements nothing grows. */
struct growth growth_judge(const struct growth_point *points, size_t count, double noise);
