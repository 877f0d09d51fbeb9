/* SPDX-License-Identifier: MIT */
/* The environment of the scheduler during a case: the clock, the jobs and their events. */
#pragma once

#include "sched/sched.h"
#include "sim/check_case.h"
#include "sim/check_ledger.h"
#include "sim/check_run.h"

enum case_job_state { CASE_COMES, CASE_WAITS, CASE_RUNS, CASE_OVER, CASE_NEVER };

struct case_state {
    enum case_job_state state; // an array runs while an element runs and none waits
    bool is_held, is_ok;       // is_ok: no attempt failed
    int64_t left, open;        // elements
    uint32_t n_started;
};

struct case_attempt {
    uint64_t id;
    size_t job;
    int64_t end_ms, stop_ms; // stop_ms: end of its preemption; TIME_NEVER: none
    bool is_new;
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
    struct case_attempt *returned; // preempted elements, which wait under ids of their own
    size_t n_returned;
    uint64_t last_element;
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

/* The department of a group, in cases with departments. */
int64_t world_department(int64_t gid);

/* True if the job's owner prefers the other one. */
bool world_is_held_by(const int64_t *job, const int64_t *other);
