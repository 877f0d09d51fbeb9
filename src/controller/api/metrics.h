/* SPDX-License-Identifier: MIT */
/* The table of metrics, for GET /metrics and the table in docs/metrics.md. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "controller/controller.h"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct exposition;
struct metrics_reader;
struct metrics_gpu;
struct metrics_node;
struct gpu_state;
struct account;

struct metric {
    const char *name; // of the family: for a counter without "_total"
    enum metric_type type;
    const char *unit;   // the suffix of its name; "": none
    const char *labels; // as listed in docs/metrics.md; "": one sample without labels
    const char *dcgm;   // equivalent field of NVIDIA's DCGM exporter; "": none
    const char *help;
    /* Writes its samples; or those of one GPU, with `write_gpu`. */
    void (*write)(struct metrics_reader *reader, const struct metric *metric);
    void (*write_gpu)(
        struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu); // NULL: `write`
    /* Reads one value; the above determine which of these is used. */
    double (*read)(const struct controller *controller);
    bool (*read_gpu)(const struct gpu_state *gpu, double *ret); // false: not available for this GPU
    double (*read_node)(const struct metrics_node *node);
    double (*read_user)(const struct account *account, int64_t now_ms);
};

const struct metric *metrics_all(size_t *ret_count);

/* Its row in docs/metrics.md, with a line feed. The caller frees it. */
char *metrics_row(const struct metric *metric);
