/* SPDX-License-Identifier: MIT */
/*
 * The formats differ in the names of counters (a family's name has no "_total" in OpenMetrics), in the lines
 * for units, in the bounds of histograms, and in the last line.
 */
#include "controller/api/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "controller/api/metrics.h"

char *exposition_label(const char *name, const char *value)
{
    _cleanup_free_ char *plain = text_escape(value, strlen(value));
    _cleanup_buffer_ struct buffer label = { 0 };
    buffer_printf(&label, "%s=\"", name);
    for (const char *p = plain; *p != '\0'; p++) {
        if (*p == '\\' || *p == '"')
            buffer_append(&label, "\\", 1);
        buffer_append(&label, p, 1);
    }
    buffer_append(&label, "\"", 1);
    return buffer_take(&label);
}

static const char *type_name(enum metric_type type)
{
    switch (type) {
    case METRIC_GAUGE: return "gauge";
    case METRIC_COUNTER: return "counter";
    case METRIC_HISTOGRAM: break;
    }
    return "histogram";
}

static const char *total(const struct metric *metric)
{
    return metric->type == METRIC_COUNTER ? "_total" : "";
}

void exposition_begin(struct exposition *out, const struct metric *metric)
{
    const char *suffix = out->is_openmetrics ? "" : total(metric);
    buffer_printf(out->text, "# HELP %s%s %s\n", metric->name, suffix, metric->help);
    buffer_printf(out->text, "# TYPE %s%s %s\n", metric->name, suffix, type_name(metric->type));
    if (out->is_openmetrics && metric->unit[0] != '\0')
        buffer_printf(out->text, "# UNIT %s %s\n", metric->name, metric->unit);
}

void exposition_sample(struct exposition *out, const struct metric *metric, const char *labels, double value)
{
    buffer_append_text(out->text, metric->name);
    buffer_append_text(out->text, total(metric));
    if (labels != NULL) {
        buffer_append_text(out->text, "{");
        buffer_append_text(out->text, labels);
        buffer_append_text(out->text, "}");
    }
    buffer_printf(out->text, " %.15g\n", value);
}

void exposition_histogram(struct exposition *out, const struct metric *metric,
    const struct histogram_scale *scale, const struct histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < scale->count; i++) {
        bool has_point = out->is_openmetrics && scale->bounds[i] == floor(scale->bounds[i]);
        count += histogram->counts[i];
        buffer_printf(out->text, "%s_bucket{le=\"%.15g%s\"} %" PRIu64 "\n", metric->name, scale->bounds[i],
            has_point ? ".0" : "", count);
    }
    count += histogram->counts[scale->count];
    buffer_printf(out->text, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", metric->name, count);
    buffer_printf(out->text, "%s_sum %.15g\n", metric->name, histogram->sum);
    buffer_printf(out->text, "%s_count %" PRIu64 "\n", metric->name, count);
}

void exposition_end(struct exposition *out)
{
    if (out->is_openmetrics)
        buffer_append_text(out->text, "# EOF\n");
}
