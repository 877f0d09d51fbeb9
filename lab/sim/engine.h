/* SPDX-License-Identifier: MIT */
/*
 * Replays a workload through the scheduler with a virtual clock. At each time: ends, then failing nodes, then
 * arrivals, then one pass. Only the engine knows real durations.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers/heap.h"
#include "lab/sim/failures.h"
#include "lab/sim/forecasts.h"
#include "lab/sim/nodes.h"
#include "lab/sim/parking.h"
#include "lab/sim/samples.h"
#include "lab/sim/workload.h"
#include "sched/sched.h"

enum estimate_source {
    ESTIMATE_HISTORY,  // learnt by the scheduler from ended jobs
    ESTIMATE_EXACT,    // the real duration: an oracle
    ESTIMATE_WALLTIME, // the user's estimate
    ESTIMATE_TRACE,    // the trace's own prediction
};

/* A GPU held for some time; for drawing. */
struct segment {
    uint32_t job, node, gpu, share; // share 0: the whole GPU
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
    int64_t tick_ms;                // passes only at multiples of this; 0: at every event
    bool has_limits;                // wall times are time limits
    bool draws;                     // keep segments
    bool plots;                     // keep the curve
    bool is_timed;                  // measure the passes
    bool is_progress;               // show progress on standard error
    uint64_t forecasts;             // about how many are made; 0: none
    int64_t failure_ms;             // mean time between failures of a node; 0: none fails
    int64_t repair_ms;              // after which it is back
    uint64_t seed;                  // of the failures
    struct parking_options parking; // if on, a preempted job is parked
};

/* The results of one job. */
struct job_result {
    int64_t start_ms, end_ms; // -1: it did not start or end
    int64_t wait_ms;          // total, including waits after preemptions
    int64_t estimate_ms;      // at its first start
    /* While it is active. */
    int64_t since_ms, work_ms; // start of the current wait or run; remaining work
    int64_t delay_ms;          // of the current run: before its work begins
    int64_t ran_ms, parked_ms; // in earlier periods, and parked by the scheduler
    bool is_parked;
    uint32_t generation; // incremented at each start and stop, to detect stale end events
    uint32_t preemptions, reclaims;
    uint32_t gpu_milli; // held
    bool is_refused, is_running;
};

struct engine {
    const struct workload *workload;
    const struct sim_nodes *nodes;
    struct engine_options options;
    struct sched *sched;
    struct job_result *results;
    struct heap ends; // of running jobs: job, generation
    int64_t now_ms;
    size_t next_arrival, n_done, n_refused, n_waiting;
    char first_refusal[512];
    uint32_t *started; // jobs of the pass in progress
    size_t n_started, started_room;
    /* Integrals over time. */
    uint64_t gpu_milli;        // held now
    double busy_until_last;    // GPU-milliseconds used until the last submission
    double waiting_ms;         // time with waiting jobs
    double free_while_waiting; // free GPU-milliseconds during that time
    double gang_while_waiting; // largest number of free whole GPUs on one node, times milliseconds
    double lost_gpu_ms;        // work lost in preemptions and failures
    uint64_t n_preemptions, n_interruptions;
    struct failures failures;
    struct allocation *places; // with parking: of each job, where it ran last
    struct parking parking;    // if options.parking.is_on
    uint64_t n_reclaims;       // jobs that started again because their GPUs were due to a parked one
    double most_parked;        // the longest that the scheduler parked a job, in its own run time before
    /* For drawing. */
    struct segment *segments;
    size_t n_segments;
    uint32_t *open_segment; // of each job: index of the first segment of its run, plus 1
    struct curve_point *curve;
    size_t n_curve;
    struct made_forecasts made; // if options.forecasts
    /* Measurements, not part of the results. */
    struct samples pass_ns;
    double sched_s, wall_s;
    size_t peak_memory_bytes;
    struct sched_counts counts;
};

/* Runs to the end. -EDEADLK if jobs wait and nothing more will happen; -EPROTO if the scheduler made an
 * impossible decision. */
int engine_run(struct engine *engine, const struct workload *workload, const struct sim_nodes *nodes,
    const struct engine_options *options, struct error *err);
void engine_clear(struct engine *engine);
