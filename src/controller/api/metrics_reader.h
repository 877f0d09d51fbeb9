/* SPDX-License-Identifier: MIT */
/* The input of one answer to GET /metrics, and the functions that write the samples of a row. */
#pragma once

#include "controller/api/exposition.h"
#include "controller/api/metrics.h"
#include "controller/http/http_private.h"
#include "sched/cluster/cluster.h"

struct metrics_gpu {
    char *labels;
    const struct gpu_state *state;
    const struct cluster_node *node; // NULL: unknown to the scheduler
    const struct cluster_gpu *gpu;
};

struct metrics_node {
    char *labels;
    const struct core_node *node; // NULL: it has not connected since mgpud started
};

struct metrics_reader {
    struct exposition out;
    struct serve *serve;
    const struct controller *controller;
    int64_t now_ms;
    struct metrics_gpu *gpus; // of nodes that are up
    size_t n_gpus;
    struct metrics_node *nodes;
    size_t n_nodes;
};

void metrics_reader_init(struct metrics_reader *reader, struct serve *serve);
void metrics_reader_clear(struct metrics_reader *reader);

/* For one sample per GPU, node or user; for one of the program; and for rows with their own function. */
void metrics_write_one(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_gpus(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_nodes(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_users(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_build(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_ecc(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_allocated(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_tests(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_speeds(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_open(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_jobs(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_ended(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_requeues(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_waits(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_runs(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_passes(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_turns(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_commits(struct metrics_reader *reader, const struct metric *metric);
