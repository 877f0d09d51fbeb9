/* SPDX-License-Identifier: MIT */
/*
 * The input of one answer to GET /metrics, and the functions that write the samples of a row. Nodes and GPUs
 * are read once, some of them in each turn, because the answer is written over several turns in which they
 * change; the copies contain no pointers into the core.
 */
#pragma once

#include "controller/api/exposition.h"
#include "controller/api/metrics.h"
#include "controller/http/http_private.h"
#include "wire/gpu_comparison.h"

struct metrics_gpu {
    char *labels;
    struct gpu_state state; // its numbers alone
    bool is_open;           // jobs can start on it
    double allocated;       // part that jobs hold
    enum gpu_test_verdict verdict;
    double speed; // worst figure of its test; of GPUs that passed or are slow
};

struct metrics_node {
    char *labels;
    bool is_up;
    double silence_s;
    uint32_t n_gpus, n_orphaned;
    uint64_t parked_bytes;
    bool is_parking_proven;
    double save_rate, load_rate; // bytes per second; 0: not measured
};

struct metrics_reader {
    struct exposition out;
    struct serve *serve;
    const struct controller *controller;
    int64_t now_ms;
    size_t at;                         // number of the next node to be read
    struct gpu_comparison *comparison; // while nodes are read
    struct metrics_gpu *gpus;          // of nodes that are up
    size_t n_gpus, gpus_capacity;
    struct metrics_node *nodes;
    size_t n_nodes, nodes_capacity;
};

void metrics_reader_init(struct metrics_reader *reader, struct serve *serve, struct buffer *text);
void metrics_reader_clear(struct metrics_reader *reader);

/* Reads the next node; false: all are read. */
bool metrics_reader_next(struct metrics_reader *reader);

/* One sample of a GPU, for `write_gpu`. */
void metrics_write_gpu(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu);
void metrics_write_ecc(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu);
void metrics_write_test(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu);
void metrics_write_speed(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu);
void metrics_write_open(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu);
void metrics_write_allocated(
    struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu);

/* For one sample per node or user; for one of the program; and for rows with their own function. */
void metrics_write_one(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_nodes(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_users(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_build(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_jobs(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_ended(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_requeues(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_parks(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_park_refusals(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_waits(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_runs(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_passes(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_step(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_turns(struct metrics_reader *reader, const struct metric *metric);
void metrics_write_commits(struct metrics_reader *reader, const struct metric *metric);
