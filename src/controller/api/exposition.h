/* SPDX-License-Identifier: MIT */
/* The text formats of Prometheus: OpenMetrics 1.0 and the older text format 0.0.4. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/histogram.h"

struct metric;

struct exposition {
    struct buffer *text;
    bool is_openmetrics;
};

/* A label as NAME="VALUE", escaped. The caller frees it. */
char *exposition_label(const char *name, const char *value);

/* Writes the lines before the samples of a metric. */
void exposition_begin(struct exposition *out, const struct metric *metric);

/* `labels`: "a=\"1\",b=\"2\"", or NULL. */
void exposition_sample(struct exposition *out, const struct metric *metric, const char *labels, double value);
void exposition_histogram(struct exposition *out, const struct metric *metric,
    const struct histogram_scale *scale, const struct histogram *histogram);

/* To be called after the last metric. */
void exposition_end(struct exposition *out);
