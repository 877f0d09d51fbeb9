/* SPDX-License-Identifier: MIT */
/*
 * Replays a workload through the scheduler with a clock of its own. In one instant: ends, then arrivals, then
 * one pass. Only here are real durations known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/sched.h"
#include "sim/event_heap.h"
#include "sim/nodes.h"
#include "sim/samples.h"
#include "sim/workload.h"

enum estimate_source {
    ESTIMATE_HISTORY,  // learnt by the scheduler from the jobs that ended
    ESTIMATE_EXACT,    // the real duration: an oracle
    ESTIMATE_WALLTIME, // what the user asked for
    ESTIMATE_TRACE,    // the trace's own prediction
};

/* One GPU held for a while; for drawing. */
struct segment {
    uint32_t job, node, gpu, share; // share 0: whole
    int64_t start_ms, end_ms;
};

struct curve_point {
    int64_t at_ms;
    uint64_t waiting;   // jobs
    uint64_t gpu_milli; // in use
};

struct engine_options {
    const struct sched_settings *settings;
    enum estimate_source estimate;
    int64_t tick_ms;  // passes only at multiples of this; 0: at every event
    bool has_limits;  // wall times are time limits
    bool draws;       // keep segments
    bool plots;       // keep the curve
    bool is_timed;    // measure the passes
    bool is_progress; // show how far it is, on standard error
};

/* What happened to one job. */
struct job_result {
    int64_t start_ms, end_ms; // -1: it did not
    int64_t wait_ms;          // in all, preemptions counted
    int64_t estimate_ms;      // when it first started
    /* While it lives. */
    int64_t since_ms, work_ms; // waiting or running since; work left
    uint32_t attempts;         // grows when it starts and when it stops, so that old ends are known as such
    uint32_t preemptions;
    uint32_t gpu_milli; // held
    bool is_refused, is_running;
};

struct engine {
    const struct workload *workload;
    const struct sim_nodes *nodes;
    struct engine_options options;
    struct sched *sched;
    struct job_result *results;
    struct event_heap ends;
    int64_t now_ms;
    size_t next_arrival, n_done, n_refused, n_waiting;
    char first_refusal[512];
    uint32_t *started; // jobs of the pass in progress
    size_t n_started, started_room;
    /* Integrals over time. */
    uint64_t gpu_milli;        // held now
    double busy_until_last;    // GPU-milliseconds held until the last submission
    double waiting_ms;         // time during which jobs waited
    double free_while_waiting; // GPU-milliseconds free meanwhile
    double gang_while_waiting; // largest number of whole GPUs free on one node, times milliseconds
    double lost_gpu_ms;        // work that preemptions cost
    uint64_t n_preemptions;
    /* For drawing. */
    struct segment *segments;
    size_t n_segments;
    uint32_t *open_segment; // of each job: its first one of the run, plus 1
    struct curve_point *curve;
    size_t n_curve;
    /* Measured, and never part of the results proper. */
    struct samples pass_ns;
    double sched_s, wall_s;
    size_t peak_memory_bytes;
    struct sched_counts counts;
};

/* Runs it to the end. -EDEADLK when jobs wait and nothing will ever happen; -EPROTO when the scheduler did
 * something impossible. */
int engine_run(struct engine *engine, const struct workload *workload, const struct sim_nodes *nodes,
    const struct engine_options *options, struct error *err);
void engine_clear(struct engine *engine);
