/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: one object that holds cluster, queue, running jobs, accounts, history, reservations and
 * rules. It has no clock and does no I/O: every call carries the time, every decision comes out through a
 * callback. The controller, the simulator and the forecasts behind `mgpu why` drive the very same object;
 * equal calls lead to equal decisions, which is what makes a journal replay exact.
 *
 * Times are wall-clock milliseconds that never step back (callers see to that).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"
#include "sched/cluster/cluster.h"
#include "sched/queue/fairshare.h"
#include "sched/history/history.h"
#include "sched/placement/placement.h"
#include "sched/queue/policy.h"
#include "sched/queue/queue.h"

struct sched;

struct sched_settings {
    const struct policy *policy;
    const struct placement *placement;
    uint32_t reservations;                         // blocked jobs that get one (EASY's K)
    int64_t half_life_ms;                          // of usage
    int64_t age_cap_ms;                            // a job submitted that much later never comes first
    int64_t default_run_ms;                        // assumed when nothing is known
    uint32_t node_jobs;                            // running jobs per node, 0: no limit
    int64_t unused_ms;                             // a reservation that nobody uses for so long is returned
    int64_t preempt_grace_ms;                      // for reckoning only: how long giving way takes
    int64_t preempt_cost_ms, preempt_cost_wide_ms; // what a preemption costs the job (wide: > 8 GPUs)
    int64_t quantum_ms;    // a job is not preempted by policy before it has run so long
    bool counts_gpus_only; // preemptive policies as in the reference simulators: who counts need not find a
                           // place
    struct account_limits user_limits, group_limits;
};

void sched_settings_init(struct sched_settings *settings);

/* Why a job does not wait in the queue; bits. */
enum sched_blocker {
    BLOCK_HELD_USER = 1,
    BLOCK_HELD_ADMIN = 2,
    BLOCK_BEGIN = 4,
    BLOCK_DEPENDENCY = 8,
    BLOCK_NEVER = 16, // a dependency that can never come true
    BLOCK_BACKOFF = 32,
};

/* What the scheduler is told of a job. Everything is copied. */
struct sched_job_spec {
    uint64_t id;
    int64_t submit_ms;
    struct class_key key;
    int64_t begin_ms, deadline_ms; // 0: none
    uint32_t hold;                 // BLOCK_HELD_*
    const struct ask_after *after; // of jobs that are not done; settled ones are the caller's business
    size_t n_after;
    bool is_array;          // stands for several: starts one element after the other
    uint32_t elements;      // of an array, those left
    uint32_t element_limit; // at most so many of them at a time, 0: all
    uint32_t elements_open; // of those that run already
    uint64_t array;         // this is an element of that array, 0: not
    uint32_t preemptions;   // times it lost its work before this scheduler heard of it
};

struct sched_callbacks {
    void *arg;
    /*
     * Start this job, or the next element of this array, with the allocation, which is booked already.
     * Returns the id under which it runs (for an element: its own). The job is running from then on.
     */
    uint64_t (*start)(void *arg, uint64_t job, const struct allocation *allocation);
    /* Take this running job back: it gives way. sched_stopped() follows when it has (or sched_ended()). */
    void (*preempt)(void *arg, uint64_t job, const char *why);
    /* What this job waits for can never come true any more. May be NULL; changes nothing at once. */
    void (*never)(void *arg, uint64_t job);
    /* A reservation was returned because nobody used it. May be NULL. */
    void (*unreserve)(void *arg, uint64_t reservation);
};

struct sched *sched_new(const struct sched_settings *settings, const struct sched_callbacks *callbacks);
void sched_free(struct sched *sched);

const struct sched_settings *sched_settings(const struct sched *sched);
void sched_configure(struct sched *sched, int64_t now_ms, const struct sched_settings *settings);

/* For reading, and for changes of the cluster through cluster_*(); call cluster_touch() after changing a
 * node. */
struct cluster *sched_cluster(struct sched *sched);
/* What each node had when it was last there, also those that have not come since the start. Only
 * sched_check() looks at it: what such a node could run may be asked for. The caller keeps it. */
struct cluster *sched_known(struct sched *sched);
struct fairshare *sched_fairshare(struct sched *sched);
struct history *sched_history(struct sched *sched);
const struct queue *sched_queue(const struct sched *sched);

/* --- jobs --- */

/* Could it ever run here, and under its owner's limits, which a job that is there and asks for no more has
 * passed? -ERANGE with what would fit; -ELOOP, -ENOENT: its
 * dependencies make no sense. */
int sched_check(const struct sched *sched, const struct sched_job_spec *spec, struct error *err);
void sched_submit(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec);
/* It is cancelled while it waits. Dependents hear of it by sched_settle(). */
void sched_withdraw(struct sched *sched, int64_t now_ms, uint64_t job);
/* Sets and clears BLOCK_HELD_* or BLOCK_BACKOFF (with the time at which it ends; TIME_NEVER: none). */
void sched_block(
    struct sched *sched, int64_t now_ms, uint64_t job, uint32_t set, uint32_t clear, int64_t until_ms);
/* Its key, begin, deadline, dependencies or elements have changed; it keeps its submit time. */
void sched_edit(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec);
/* A running job may run for so long from now on; 0: without a limit. */
void sched_relimit(struct sched *sched, int64_t now_ms, uint64_t id, int64_t limit_ms);

/* A job that runs already (a restart): books its allocation. `spec->elements` is 0. */
void sched_resume(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec,
    const struct allocation *allocation, int64_t started_ms);
/* The command has begun: durations count from here. */
void sched_started(struct sched *sched, int64_t now_ms, uint64_t job);
/* It does not use its GPUs, and gives way as if it were preemptible until it does. */
void sched_idle(struct sched *sched, int64_t now_ms, uint64_t job, bool is_idle);
/* It runs no more: its allocation is free. run_ms >= 0: how long it ran, from which is learnt; < 0: nothing
 * to learn. */
void sched_ended(struct sched *sched, int64_t now_ms, uint64_t job, int64_t run_ms);
/* It gave way or came back unstarted: its allocation is free, and it waits again with its old submit time.
 * done_ms: work that is kept (a simulator's; 0 for a job that starts anew). */
void sched_stopped(struct sched *sched, int64_t now_ms, uint64_t job, int64_t done_ms);
/* What a preemption costs a job of so many GPUs. */
int64_t sched_preempt_cost(const struct sched_settings *settings, uint32_t gpus);
/* A job is done, for those that wait for it. */
void sched_settle(struct sched *sched, int64_t now_ms, uint64_t job, bool is_ok);

/* --- reservations --- */
struct sched_reservation {
    uint64_t id;
    char *name;
    int64_t from_ms, until_ms;
    uint32_t *uids;
    size_t n_uids;
    struct alloc_gpu *gpus; // the GPUs, chosen by sched_reserve() unless named
    size_t n_gpus;
    int64_t used_ms; // when one of its users' jobs last ran on it
    bool is_kept;    // never returned before its end, used or not
};
/* -EINVAL in the past or empty, -EBUSY overlapping, -ERANGE more GPUs than there are: one sentence each.
 * `request` says how many or which; `reservation->gpus` is filled in. */
int sched_reserve(struct sched *sched, int64_t now_ms, const struct sched_request *request,
    struct sched_reservation *reservation, struct error *err); // copied
int sched_unreserve(struct sched *sched, int64_t now_ms, uint64_t reservation);
const struct sched_reservation *sched_reservations(const struct sched *sched, size_t *ret_count);

/* --- deciding --- */

/* Something may have become possible since the last pass. */
bool sched_is_dirty(const struct sched *sched);
/* One pass: timers that are due, then who starts now and who gives way. */
void sched_pass(struct sched *sched, int64_t now_ms);
/* When a pass is due though nothing was told: begin times, reservations, overrun estimates, ranks.
 * TIME_NEVER: never. */
int64_t sched_next_ms(const struct sched *sched);

/* Counters since the start, for the figures. */
struct sched_counts {
    uint64_t passes, examined, index_work, queue_work, starts, preemptions, classes_tried;
};
const struct sched_counts *sched_counts(const struct sched *sched);

/* --- looking --- */
struct sched_look {    // of one job
    uint32_t blockers; // enum sched_blocker
    bool is_running;
    uint64_t position; // 1 is next; 0: not in the queue, or kept out of it by a limit
    int64_t begin_ms, deadline_ms, backoff_ms;
    int64_t expected_end_ms, certain_end_ms; // while it runs; TIME_NEVER: not known
    int64_t shadow_ms;                       // its reservation begins; TIME_NEVER: it has none
    struct estimate estimate;
    const struct allocation *allocation; // while it runs
    const struct class_key *key;
};
bool sched_look(const struct sched *sched, uint64_t job, int64_t now_ms, struct sched_look *ret);

/* How far a job is with one that it was told to wait for. */
enum sched_wait { SCHED_WAIT_OPEN, SCHED_WAIT_TRUE, SCHED_WAIT_NEVER };
enum sched_wait sched_wait_of(const struct sched *sched, uint64_t job, uint64_t awaited);

/* Under what key jobs of this class are learnt from. */
void sched_history_key(const struct sched *sched, const struct class_key *key, struct history_key *ret);

/*
 * A second scheduler with the same cluster, running jobs, accounts, history and reservations, and the first
 * `max_jobs` waiting ones in order of rank (plus `always`, 0: none), with callbacks of its own. For forecasts
 * and "what if".
 */
struct sched *sched_fork(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    const struct sched_callbacks *callbacks);
/* In a fork: reservations are taken to be used to their ends; those of users who wait for nothing only if
 * `keeps_all`. */
void sched_keep_reservations(struct sched *sched, bool keeps_all);
/* In a fork: when each running job ends by expectation (or for certain); the next one to end. 0: none runs.
 */
uint64_t sched_next_end(const struct sched *sched, bool is_certain, int64_t *ret_end_ms);

int sched_invariant(const struct sched *sched, struct error *err);
