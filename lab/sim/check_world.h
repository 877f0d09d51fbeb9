/* SPDX-License-Identifier: MIT */
/* The environment of the scheduler during a case: the clock, the jobs and their events. */
#pragma once

#include "lab/sim/check_case.h"
#include "lab/sim/check_ledger.h"
#include "lab/sim/check_run.h"
#include "lab/sim/parking.h"
#include "sched/sched.h"

enum case_job_state { CASE_COMES, CASE_WAITS, CASE_RUNS, CASE_OVER, CASE_NEVER };

struct case_state {
    enum case_job_state state; // an array runs while an element runs and none waits
    bool is_held, is_ok;       // is_ok: no attempt failed
    int64_t left, open;        // elements
    uint32_t n_started;
    int64_t work_ms; // left, of what is not an array
};

struct case_attempt {
    uint64_t id;
    size_t job;
    int64_t start_ms, end_ms, stop_ms; // stop_ms: end of its preemption; TIME_NEVER: none
    bool is_new, is_parking;           // is_parking: what ends at stop_ms is a park
    struct allocation allocation;
};

struct world {
    const struct sim_case *of;
    const struct check_spoiler *spoiler;
    struct sched_settings settings;
    struct sched *sched;
    struct ledger ledger;
    struct case_state *jobs;
    bool *has_happened; // events
    struct case_attempt *attempts;
    size_t n_attempts;
    struct case_attempt *returned; // preempted elements, which wait under their own ids
    size_t n_returned;
    uint64_t last_element;
    struct parking parking;    // what is said to the scheduler
    struct park_books *parked; // of each job, what is checked
    struct bound_books *bounds;
    bool has_reserved; // GPUs are reserved, or were
    int64_t now_ms;
    unsigned n_starts;  // at this time
    struct error error; // of a callback
    /* Of the first job in the queue. */
    uint64_t first;
    int64_t promised_ms, promised_at_ms;
    bool is_disturbed;
};

void world_init(struct world *world, const struct sim_case *of, const struct check_spoiler *spoiler);
void world_clear(struct world *world);
int64_t world_next_ms(const struct world *world); // TIME_NEVER: nothing more will happen
void world_happen(struct world *world);           // handles ends, events, releases and arrivals that are due
void world_after_pass(struct world *world);
bool world_is_over(const struct world *world);

struct case_attempt *world_attempt(const struct world *world, uint64_t id); // NULL: it does not run
/* It does not run any more: takes back what it had. The last attempt takes its place in the array. */
void world_drop_attempt(struct world *world, struct case_attempt *attempt);

/* The department of a group, in cases with departments. */
int64_t world_department(int64_t gid);

/* True if the job's owner prefers the other one. */
bool world_is_held_by(const int64_t *job, const int64_t *other);
