/* SPDX-License-Identifier: MIT */
/* The one table of metrics, from which GET /metrics and the table in docs/metrics.md come. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "controller/controller.h"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metrics_reader;
struct gpu_state;
struct account;

struct metric {
    const char *name; // of the family: of a counter without "_total"
    enum metric_type type;
    const char *unit;   // the last word of its name; "": it has none
    const char *labels; // as docs/metrics.md lists them; "": one sample without labels
    const char *dcgm;   // field of NVIDIA's DCGM exporter with the same value; "": none
    const char *help;
    void (*write)(struct metrics_reader *reader, const struct metric *metric); // its samples
    /* How one value is read; which of these depends on `write`. */
    double (*read)(const struct controller *controller);
    bool (*read_gpu)(const struct gpu_state *gpu, double *ret); // false: the GPU does not have it
    double (*read_node)(const struct core_node *node);
    double (*read_user)(const struct account *account, int64_t now_ms);
};

const struct metric *metrics_all(size_t *ret_count);

/* Its row in docs/metrics.md, with the line feed. The caller frees it. */
char *metrics_row(const struct metric *metric);
