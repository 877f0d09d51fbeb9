/* SPDX-License-Identifier: MIT */
/* What a job's GPUs did, as values between 0 and 1 for a plot; GRAPH_UNKNOWN where nobody knows. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define POINTS_MAX 2000

/* Means over the job's GPUs of one of the arrays of GET /gpus/history ("utilization"); how many. */
size_t points_of_gpus(const json_t *job, const json_t *past, const char *name, double points[POINTS_MAX]);

/* One column of the timeline of its usage (0 busy, 1 memory), which is known of a job that is over, too. */
size_t points_of_usage(const json_t *usage, size_t column, double points[POINTS_MAX]);

/* The largest, 0 without any. */
double points_peak(const double *points, size_t count);
