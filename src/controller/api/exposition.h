/* SPDX-License-Identifier: MIT */
/* The text in which Prometheus reads metrics, in both of its forms: OpenMetrics 1.0 and the older text 0.0.4.
 */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/histogram.h"

struct metric;

struct exposition {
    struct buffer text;
    bool is_openmetrics;
};

/* The value of a label, escaped, as NAME="VALUE". The caller frees it. */
char *exposition_label(const char *name, const char *value);

/* The lines before the samples of a metric. */
void exposition_begin(struct exposition *out, const struct metric *metric);

/* `labels`: "a=\"1\",b=\"2\"", or NULL. */
void exposition_sample(struct exposition *out, const struct metric *metric, const char *labels, double value);
void exposition_histogram(struct exposition *out, const struct metric *metric,
    const struct histogram_scale *scale, const struct histogram *histogram);

/* After the last metric. */
void exposition_end(struct exposition *out);
