/* SPDX-License-Identifier: MIT */
/*
 * What other settings would have done with the same jobs: variants of the scheduler's settings, one replay of
 * each in its own process, and the measures of every variant compared with those of the first one, which
 * stands for the settings in force.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "lab/sim/nodes.h"
#include "lab/sim/workload.h"
#include "sched/sched.h"

#define TUNE_VARIANTS_MAX 64U

/* --- variants (variants.c) --- */

struct tune_variant {
    const char *text; // "policy=learnt", "reservations=2,age-cap=14d"; borrowed
    struct sched_settings settings;
};

/* The variants that are tried when none is named; NULL at the end. */
extern const char *const tune_usual[];

/* Changes the settings by "name=value,...", with the names and values of mgpud's options. -EINVAL. */
int tune_apply(const char *text, struct sched_settings *settings, struct error *err);

/* True if a scheduler with these settings parks jobs for shorter ones. */
bool tune_parks(const struct sched_settings *settings);

/* The settings that tune_apply() knows, as such a text, appended. */
void tune_describe(const struct sched_settings *settings, struct buffer *out);

/* --- replays (runs.c) --- */

struct tune_job {
    int64_t wait_ms;
    int64_t end_ms; // -1: it can never run on this cluster
};

struct tune_outcome {
    int status;             // 0 when the replay is complete
    double idle_gpus;       // mean number of free GPUs while jobs waited
    char problem[256];      // why it is not
    struct tune_job jobs[]; // as many as the workload has
};

/*
 * Replays the workload with each variant, `parallel` at a time. The outcomes, one per variant, are freed by
 * tune_free(). -EIO: a replay failed, and why.
 */
int tune_run(const struct workload *workload, const struct sim_nodes *nodes,
    const struct tune_variant *variants, size_t n_variants, unsigned parallel,
    struct tune_outcome **ret_outcomes, struct error *err);
void tune_free(struct tune_outcome **outcomes, size_t n_variants, const struct workload *workload);

/* --- measures (compare.c) --- */

enum tune_measure { TUNE_AVERAGE, TUNE_P99, TUNE_WIDE, TUNE_WORST_USER, TUNE_MEASURES };

struct tune_ratio {
    double value, low, high; // to the first variant: as measured, and the bounds of its 90 % interval
};

struct tune_result {
    double values[TUNE_MEASURES]; // waits in seconds; the worst user's mean slowdown
    struct tune_ratio ratios[TUNE_MEASURES];
    double idle_gpus;
    size_t refused;
};

struct tune_comparison {
    size_t n_variants, n_jobs, n_wide, n_users, n_blocks;
    uint32_t wide_gpus; // a job is wide from so many GPUs on
    int64_t span_ms;    // from the first submission to the last
    struct tune_result results[TUNE_VARIANTS_MAX];
};

/*
 * Compares the outcomes. The intervals are from a block bootstrap (Kuensch, Annals of Statistics 17, 1989):
 * the time of submissions is cut into blocks of a day (at least 10 and at most 60 of equal length), which are
 * drawn with replacement, the same ones for all variants.
 */
void tune_compare(const struct workload *workload, const struct sim_nodes *nodes,
    struct tune_outcome *const *outcomes, size_t n_variants, uint64_t seed, struct tune_comparison *ret);

/* +1: better than the first variant in 95 % of the resamples, -1: worse, 0: perhaps by chance. */
int tune_verdict(const struct tune_ratio *ratio);

/* --- output (report.c, picture.c) --- */

struct tune_report {
    const char *trace, *cluster; // cluster NULL: the one of the journal
    const struct sim_nodes *nodes;
    const struct tune_variant *variants;
    const struct tune_comparison *comparison;
};

void tune_print(const struct tune_report *report);
void tune_print_json(const struct tune_report *report);
/* Draws the intervals as SVG. */
int tune_draw(const struct tune_report *report, const char *path, struct error *err);

extern const char *const tune_measure_names[TUNE_MEASURES]; // for people
