/* SPDX-License-Identifier: MIT */
/* What surrounds the scheduler while a case runs: the clock, the jobs and what happens to them. */
#pragma once

#include "sched/sched.h"
#include "sim/check_case.h"
#include "sim/check_ledger.h"
#include "sim/check_run.h"

enum case_job_state { CASE_COMES, CASE_WAITS, CASE_RUNS, CASE_OVER, CASE_NEVER };

struct case_state {
    enum case_job_state state; // an array runs while an element does and nothing of it waits
    bool is_held, is_ok;       // is_ok: no run of it failed
    int64_t left, open;        // elements
    uint32_t n_started;
};

struct case_attempt {
    uint64_t id;
    size_t job;
    int64_t end_ms, stop_ms; // stop_ms: it gives way then; TIME_NEVER: it need not
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
    struct case_attempt *returned; // elements that gave way and wait under ids of their own
    size_t n_returned;
    uint64_t last_element;
    int64_t now_ms;
    unsigned n_starts;  // in this instant
    struct error error; // of a callback
    /* Of the job that stands first. */
    uint64_t first;
    int64_t promised_ms, promised_at_ms;
    bool is_disturbed;
};

void world_init(struct world *world, const struct sim_case *of, const struct check_spoiler *spoiler);
void world_clear(struct world *world);
int64_t world_next_ms(const struct world *world); // TIME_NEVER: nothing will happen any more
void world_happen(struct world *world);           // ends, events, releases, arrivals that are due
void world_after_pass(struct world *world);
bool world_is_over(const struct world *world);

/* Whether the job's owner wants the other one before it. */
bool world_is_held_by(const int64_t *job, const int64_t *other);
