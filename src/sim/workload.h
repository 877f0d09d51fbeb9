/* SPDX-License-Identifier: MIT */
/*
 * What is replayed: jobs with their submit times and real durations, read from a trace. Only the engine sees
 * the durations; the scheduler gets what `--estimate` allows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "sim/names.h"

#define TRACE_GPUS_MAX  100000U // of one job
#define TRACE_TIME_MAX  4e9     // seconds: more than a century
#define BAD_LINES_SHOWN 10U

struct sim_job {
    int64_t submit_ms, duration_ms;
    int64_t pred_ms; // the trace's own prediction, 0: none
    int64_t wall_ms; // the time that the user asked for, 0: none
    uint64_t memory; // bytes of host memory, 0: not asked
    uint64_t stem;   // hash of what it runs
    uint32_t user, group;
    uint32_t gpus, share; // share: thousandths of one GPU, 0: whole ones
    uint32_t cpu_milli;
    uint32_t model; // in `models`, where 0 is "" (any)
};

struct workload {
    struct sim_job *jobs; // in order of submission once read
    size_t n_jobs;
    struct names users, groups, models;
    bool has_pred, has_wall;
    bool is_journal;    // read from a journal, which also describes its machine
    uint64_t n_bad;     // lines passed over
    struct strings bad; // the first of them, as sentences
};

struct trace_options {
    bool skip_bad;          // pass over broken lines
    uint64_t max_jobs;      // 0: all
    const char *users_from; // the column that names the user; NULL: "user"
    bool is_untimed;        // times do not matter: a trace may lack them
};

/* Reads SWF, CSV or a journal, told apart by how the file begins. */
int workload_read(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);

/* The same in the order of the file, without the ends of jobs being of interest: lists of pods. */
int workload_read_as_is(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err);

/* Appends a copy. */
void workload_add(struct workload *workload, const struct sim_job *job);

/* In order of submission, equal times in the order of the file; the first submission becomes time 0. */
void workload_sort(struct workload *workload);

void workload_clear(struct workload *workload);

/* --- for the readers --- */

struct line_reader {
    const char *path;
    uint64_t number; // of the line being read, from 1
    struct workload *workload;
    const struct trace_options *options;
    /* What the reader knows of this file; it begins zeroed. */
    void *state;
    /* Reads one line (without its end; it may be written to): 0, or an error that makes it a bad line. */
    int (*read)(struct line_reader *reader, char *line, struct error *err);
    /* The first line was bad or missing: nothing else can be read. */
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

/* Seconds, with or without a fraction, to milliseconds; -1 is an ordinary value here. */
int seconds_parse(const char *text, const char *what, int64_t *ret_ms, struct error *err);

/* Splits a CSV line in place; quotes are understood. At most `max` fields; returns how many there are. */
size_t csv_split(char *line, char **fields, size_t max);
