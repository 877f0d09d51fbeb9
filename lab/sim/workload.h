/* SPDX-License-Identifier: MIT */
/*
 * Workloads: jobs with their submit times and real durations, read from a trace. Only the engine sees
 * durations; the scheduler gets what `--estimate` allows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "lab/sim/names.h"

#define TRACE_GPUS_MAX  100000U // of one job
#define TRACE_TIME_MAX  4e9     // seconds: more than a century
#define BAD_LINES_SHOWN 10U

struct sim_job {
    int64_t submit_ms, duration_ms;
    int64_t pred_ms; // the trace's own prediction, 0: none
    int64_t wall_ms; // the user's requested time, 0: none
    uint64_t memory; // bytes of host memory, 0: not requested
    uint64_t command_hash;
    uint32_t user, group;
    uint32_t gpus, share; // share: thousandths of one GPU, 0: whole GPUs
    uint32_t cpu_milli;
    uint32_t model; // in `models`, where 0 is "" (any)
};

struct workload {
    struct sim_job *jobs; // ordered by submission once read
    size_t n_jobs;
    struct names users, groups, models;
    bool has_pred, has_wall;
    bool is_journal;    // read from a journal, which also describes its machine
    uint64_t n_bad;     // lines skipped
    struct strings bad; // messages about the first of them
};

struct trace_options {
    bool skip_bad;          // skip invalid lines
    uint64_t max_jobs;      // 0: all
    const char *users_from; // the column with the user; NULL: "user"
    bool is_untimed;        // times are not needed: a trace may lack them
};

/* Reads SWF, CSV or a journal, detected by the beginning of the file. */
int workload_read(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);

/* The same in the order of the file, without the ends of jobs: lists of pods. */
int workload_read_as_is(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);

/* Appends a copy. */
void workload_add(struct workload *workload, const struct sim_job *job);

/* Sorts by submission, equal times in the order of the file; the first submission becomes time 0. */
void workload_sort(struct workload *workload);

void workload_clear(struct workload *workload);

/* --- for the readers --- */

struct line_reader {
    const char *path;
    uint64_t number; // of the line being read, from 1
    struct workload *workload;
    const struct trace_options *options;
    /* The reader's state for this file; initially zeroed. */
    void *state;
    /* Parses one line (without its end; may be modified): 0, or an error that makes it a bad line. */
    int (*read)(struct line_reader *reader, char *line, struct error *err);
    /* The first line was bad or missing: the file cannot be read. */
    bool is_lost;
};

/* Calls reader->read for every line; a bad line ends it unless options->skip_bad. */
int lines_read(struct line_reader *reader, struct error *err);

int read_swf(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);
int read_csv(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);
int read_journal(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);

/* Parses seconds, with or without a fraction, into milliseconds; -1 is a valid value here. */
int seconds_parse(const char *text, const char *what, int64_t *ret_ms, struct error *err);

/* Splits a CSV line in place; quotes are supported. At most `max` fields; returns the number of fields. */
size_t csv_split(char *line, char **fields, size_t max);
