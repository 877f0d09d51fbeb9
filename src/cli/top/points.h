/* SPDX-License-Identifier: MIT */
/* The usage of a job's GPUs as values between 0 and 1 for a plot; GRAPH_UNKNOWN where unknown. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define POINTS_MAX 2000

/* Means over the job's GPUs of one array of GET /gpus/history ("utilization"); returns their number. */
size_t points_of_gpus(const json_t *job, const json_t *past, const char *name, double points[POINTS_MAX]);

/* One column of the timeline of its usage (0 busy, 1 memory), which is also available after the end. */
size_t points_of_usage(const json_t *usage, size_t column, double points[POINTS_MAX]);

/* The maximum, 0 without values. */
double points_peak(const double *points, size_t count);
