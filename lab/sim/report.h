/* SPDX-License-Identifier: MIT */
/* Prints the metrics of a replay as text and as JSON. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "lab/sim/metrics.h"

struct report {
    const char *trace, *cluster; // as typed
    const struct policy *policy;
    const struct placement *placement;
    const char *estimate;
    bool is_oracle; // a policy or an estimate uses real durations
    bool is_reference, has_timing;
    uint64_t bad_lines;
    size_t nodes;
    uint64_t gpus;
    const struct metrics *metrics;
    const struct sched_counts *counts;
    const char *first_refusal;
};

void report_table(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);
