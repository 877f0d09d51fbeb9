/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: one object with cluster, queue, running jobs, accounts, history, reservations and rules. It
 * has no clock and does no I/O: every call passes the time, and every decision is a callback. The controller,
 * the simulator and the forecasts behind `mgpu why` use the same code. Equal calls lead to equal decisions,
 * which makes a journal replay exact.
 *
 * Times are wall-clock milliseconds that never decrease (the callers ensure this).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"
#include "sched/cluster/cluster.h"
#include "sched/history/history.h"
#include "sched/placement/placement.h"
#include "sched/queue/fairshare.h"
#include "sched/queue/policy.h"
#include "sched/queue/queue.h"

struct sched;

/* Who may park a running job. */
enum parking_mode {
    PARKING_NEVER,
    PARKING_ASKED, // its owner or an administrator; for the scheduler the same as PARKING_NEVER
    PARKING_AUTO,  // the scheduler as well, for jobs that will probably end much sooner (sched_guest.c)
};

struct sched_settings {
    const struct policy *policy;
    const struct placement *placement;
    uint32_t reservations;                         // number of blocked jobs with a reservation (EASY's K)
    int64_t half_life_ms;                          // of usage decay
    int64_t age_cap_ms;                            // a job submitted this much later cannot come first
    int64_t default_run_ms;                        // assumed run time without any data
    uint32_t node_jobs;                            // running jobs per node, 0: no limit
    uint32_t node_starts;                          // jobs without GPUs that a node starts at a time, 0: all
    int64_t unused_ms;                             // a reservation unused for this time is returned
    int64_t preempt_grace_ms;                      // for estimates: how long a preemption takes
    int64_t preempt_cost_ms, preempt_cost_wide_ms; // cost of a preemption to the job (wide: > 8 GPUs)
    int64_t preempt_cost_gpu_ms;                   // and for each of its GPUs
    int64_t quantum_ms;                            // minimum run time before a preemption by policy
    enum parking_mode parking;
    int64_t park_cost_ms;  // cost of parking a job and returning it; 0: as for a preemption
    uint32_t park_bound;   // maximum ratio of a job's total parked time to its running time; at least
                           // park_layers + 2
    uint32_t park_ratio;   // a guest must probably end within the remaining time of its host, divided by this
    uint32_t park_layers;  // maximum number of jobs parked from a GPU for guests, 1 or 2
    uint32_t park_margin;  // a job that cannot be parked borrows owed GPUs if they are due in this many times
                           // what it probably needs; 0: never
    bool counts_gpus_only; // preemptive policies as in the reference simulators, which count GPUs without
                           // placing jobs
    struct account_limits user_limits, group_limits;
};

/* The numbers among them that mgpud writes to the journal as "name=value", and the simulator reads:
 * X(kind, name, member); kinds are U32, MS (int64_t) and REAL. */
#define SCHED_SETTINGS_TABLE(X)                                                                              \
    X(U32, reservations, reservations)                                                                       \
    X(MS, half_life_ms, half_life_ms)                                                                        \
    X(MS, age_cap_ms, age_cap_ms)                                                                            \
    X(MS, default_run_ms, default_run_ms)                                                                    \
    X(U32, node_jobs, node_jobs)                                                                             \
    X(U32, node_starts, node_starts)                                                                         \
    X(MS, unused_ms, unused_ms)                                                                              \
    X(MS, preempt_grace_ms, preempt_grace_ms)                                                                \
    X(MS, preempt_cost_ms, preempt_cost_ms)                                                                  \
    X(MS, preempt_cost_wide_ms, preempt_cost_wide_ms)                                                        \
    X(MS, quantum_ms, quantum_ms)                                                                            \
    X(U32, user_max_jobs, user_limits.jobs)                                                                  \
    X(U32, user_max_gpu_milli, user_limits.gpu_milli)                                                        \
    X(REAL, user_max_gpu_seconds, user_limits.gpu_seconds)                                                   \
    X(U32, group_max_jobs, group_limits.jobs)                                                                \
    X(U32, group_max_gpu_milli, group_limits.gpu_milli)                                                      \
    X(REAL, group_max_gpu_seconds, group_limits.gpu_seconds)                                                 \
    X(U32, parking, parking)                                                                                 \
    X(MS, park_cost_ms, park_cost_ms)

void sched_settings_init(struct sched_settings *settings);

/* Why a job is not in the queue; bits. */
enum sched_blocker {
    BLOCK_HELD_USER = 1,
    BLOCK_HELD_ADMIN = 2,
    BLOCK_BEGIN = 4,
    BLOCK_DEPENDENCY = 8,
    BLOCK_NEVER = 16, // a dependency that can never be satisfied
    BLOCK_BACKOFF = 32,
};

/* A job's description for the scheduler. Everything is copied. */
struct sched_job_spec {
    uint64_t id;
    int64_t submit_ms;
    struct class_key key;
    int64_t begin_ms, deadline_ms; // 0: none
    uint32_t hold;                 // BLOCK_HELD_*
    const struct ask_after
        *after; // dependencies on jobs that are not done; the caller handles those already decided
    size_t n_after;
    bool is_array;          // an array: starts its elements one by one
    uint32_t elements;      // of an array: remaining elements
    uint32_t element_limit; // maximum number of running elements, 0: all
    uint32_t elements_open; // elements already running
    uint64_t array;         // the array this is an element of, 0: none
    uint32_t preemptions;   // preemptions that lost its work, before this scheduler was created
    /* Since it last started from the beginning: how long it has run, and has been parked by the scheduler, in
     * earlier periods; and if it is parked now, since when, and the GPUs that it left. */
    int64_t ran_ms, waited_ms, parked_ms; // parked_ms 0: it is not parked
    const struct allocation *left;
    int64_t done_ms;      // work kept from earlier periods
    bool is_being_parked; // it runs, and will be parked
    uint64_t guest;       // for this job; 0: for none
};

struct sched_callbacks {
    void *arg;
    /*
     * Starts this job, or the next element of this array, with the allocation, which is already booked.
     * Returns the id of the started job (for an element: its own), which the scheduler then regards as
     * running.
     */
    uint64_t (*start)(void *arg, uint64_t job, const struct allocation *allocation);
    /* Preempts this running job. sched_stopped() follows when it has stopped (or sched_ended()). */
    void (*preempt)(void *arg, uint64_t job, const char *why);
    /* Preempts this running job, which cannot be parked, because its GPUs are due to that parked one.
     * sched_stopped() follows as after preempt(), which is called instead if this is NULL. */
    void (*reclaim)(void *arg, uint64_t job, uint64_t parked);
    /* May this running job be preempted now? Called again directly before each preemption; false prevents it.
     * NULL: every job may. */
    bool (*may_preempt)(void *arg, uint64_t job);
    /* Parks this running job for a waiting one (0: for a parked one that returns). sched_parked() follows, or
     * sched_park_refused(), or sched_ended(). NULL: the scheduler parks none, whatever the settings. */
    void (*park)(void *arg, uint64_t job, uint64_t guest);
    /* Can this waiting or running job be parked, as far as is known? NULL: every job can. */
    bool (*may_park)(void *arg, uint64_t job);
    /* May this waiting job, which cannot be parked because its command refuses, borrow GPUs that are owed to
     * a parked job? It starts again from the beginning if it still runs when they are due, so the answer must
     * be false for a job to which that has happened. NULL: none may. */
    bool (*may_borrow)(void *arg, uint64_t job);
    /* A dependency of this job can never be satisfied any more. May be NULL; changes nothing immediately. */
    void (*never)(void *arg, uint64_t job);
    /* An unused reservation was returned. May be NULL. */
    void (*unreserve)(void *arg, uint64_t reservation);
};

struct sched *sched_new(const struct sched_settings *settings, const struct sched_callbacks *callbacks);
void sched_free(struct sched *sched);

const struct sched_settings *sched_settings(const struct sched *sched);
void sched_configure(struct sched *sched, int64_t now_ms, const struct sched_settings *settings);

/* Replaces the partitions of both clusters below; at most PARTITIONS_MAX. Waiting jobs then use the new ones;
 * those of a removed partition wait until it exists again. */
void sched_set_partitions(
    struct sched *sched, int64_t now_ms, const struct cluster_partition *partitions, size_t count);

/* For reading, and for changes through cluster_*(); call cluster_touch() after changing a node. */
struct cluster *sched_cluster(struct sched *sched);
/* The last known hardware of each node, including nodes that have not connected since the start. Used only by
 * sched_check(), which accepts requests that such nodes could run. The caller maintains it. */
struct cluster *sched_known(struct sched *sched);
struct fairshare *sched_fairshare(struct sched *sched);
struct history *sched_history(struct sched *sched);
const struct queue *sched_queue(const struct sched *sched);

/* --- jobs --- */

/* Checks whether the job could ever run here and under its owner's limits; an existing job that requests no
 * more is not checked against the limits again. -ERANGE with what would fit; -ELOOP, -ENOENT: invalid
 * dependencies. */
int sched_check(const struct sched *sched, const struct sched_job_spec *spec, struct error *err);
void sched_submit(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec);
/* Cancels a waiting job. Its dependents are notified by sched_resolve_dependents(). */
void sched_withdraw(struct sched *sched, int64_t now_ms, uint64_t job);
/* Sets and clears BLOCK_HELD_* or BLOCK_BACKOFF (with the time at which it ends; TIME_NEVER: none). */
void sched_block(
    struct sched *sched, int64_t now_ms, uint64_t job, uint32_t set, uint32_t clear, int64_t until_ms);
/* Changes its key, begin, deadline, dependencies or elements; the submit time is kept. */
void sched_edit(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec);
/* Changes the time limit of a running job, counted from its start; 0: no limit. Also called if that stays,
 * and it may be parked no more. */
void sched_relimit(struct sched *sched, int64_t now_ms, uint64_t id, int64_t limit_ms);

/* A GPU that a running job has, and a parked job has again by then. */
struct sched_debt {
    struct alloc_gpu gpu;
    uint64_t job;
    int64_t due_ms;
};

/* False if this running job, with that limit and possibly refusing to be parked, could have a GPU beyond the
 * time at which a parked job returns to it, and that one cannot return to another. Changes nothing. */
bool sched_may_stay(
    struct sched *sched, uint64_t id, int64_t limit_ms, bool refuses_park, struct sched_debt *ret);

/* Adds a job that is already running (after a restart) and books its allocation. `spec->elements` is 0. */
void sched_resume(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec,
    const struct allocation *allocation, int64_t started_ms);
/* This waiting job, which is held, begins on this allocation without a pass, and is held no more. started_ms:
 * when it has started; 0: it has not. */
void sched_begin(struct sched *sched, int64_t now_ms, uint64_t job, const struct allocation *allocation,
    int64_t started_ms);
/* The command has started: run times count from here. */
void sched_started(struct sched *sched, int64_t now_ms, uint64_t job);
/* It does not use its GPUs and is preemptible until it does. */
void sched_idle(struct sched *sched, int64_t now_ms, uint64_t job, bool is_idle);
/* It has ended: releases its allocation. run_ms >= 0: its run time, added to the history; < 0: not added. */
void sched_ended(struct sched *sched, int64_t now_ms, uint64_t job, int64_t run_ms);
/* It was preempted or returned without having started: releases its allocation; the job waits again with its
 * old submit time. done_ms: work that is kept (in a simulation; 0 for a job that starts again from the
 * beginning). */
void sched_stopped(struct sched *sched, int64_t now_ms, uint64_t job, int64_t done_ms);
/* It was parked, or its return has failed: releases its GPUs; its CPUs and host memory stay booked. It waits
 * again, for GPUs of the same model on its node, and has them by sched_latest_return(). done_ms: work done so
 * far (in a simulation), else 0. */
void sched_parked(struct sched *sched, int64_t now_ms, uint64_t job, int64_t done_ms);
/* It could not be parked and runs on; it is not asked again. If its GPUs are due to a parked job that can
 * have no others, it is preempted. */
void sched_park_refused(struct sched *sched, int64_t now_ms, uint64_t job);
/* The latest time at which a job parked by the scheduler has its GPUs again; TIME_NEVER: it is not parked.
 */
int64_t sched_latest_return(const struct sched *sched, uint64_t job);
/* The parked job to which GPUs of this running one are due first, and when, if that one can then neither be
 * parked nor has certainly ended: it is preempted. 0: there is none. */
uint64_t sched_lender(const struct sched *sched, uint64_t job, int64_t *ret_due_ms);
/* The first running job of which a parked job is the lender; 0: there is none. */
uint64_t sched_borrower(const struct sched *sched, uint64_t parked);
/* May this waiting job start on GPUs that are owed to a parked job, although it might have to start again? */
bool sched_may_borrow(const struct sched *sched, uint64_t job);
/* The cost of a preemption of a job with this many GPUs. */
int64_t sched_preempt_cost(const struct sched_settings *settings, uint32_t gpus);
/* A job is done; resolves dependencies on it. */
void sched_resolve_dependents(struct sched *sched, int64_t now_ms, uint64_t job, bool is_ok);
/* It started at `since_ms`, or ended then without a start: dependencies on its start are due, or will be
 * after their delay. For jobs without a call of sched_started(), before sched_resolve_dependents(). */
void sched_began(struct sched *sched, int64_t now_ms, uint64_t job, int64_t since_ms);

/* --- nodes on which starts fail --- */
/* No job of this user (CLUSTER_ALL_USERS: of any) starts on the node before that time; `why` is for people.
 */
void sched_bar(
    struct sched *sched, int64_t now_ms, const char *node, uint32_t uid, int64_t until_ms, const char *why);
void sched_unbar(struct sched *sched, int64_t now_ms, const char *node, uint32_t uid);

/* --- reservations --- */
struct sched_reservation {
    uint64_t id;
    char *name;
    int64_t from_ms, until_ms;
    uint32_t *uids;
    size_t n_uids;
    struct alloc_gpu *gpus; // the GPUs, chosen by sched_reserve() unless named
    size_t n_gpus;
    int64_t used_ms; // when a job of its users last used it
    bool is_kept;    // never returned before its end, even if unused
};
/* Creates a reservation. -EINVAL: in the past or empty, -EBUSY: overlapping, -ERANGE: more GPUs than exist;
 * one sentence each. `request` says how many or which GPUs; `reservation->gpus` is filled in. */
int sched_reserve(struct sched *sched, int64_t now_ms, const struct sched_request *request,
    struct sched_reservation *reservation, struct error *err); // copied
int sched_unreserve(struct sched *sched, int64_t now_ms, uint64_t reservation);
const struct sched_reservation *sched_reservations(const struct sched *sched, size_t *ret_count);

/* --- deciding --- */

/* True if a pass might find something to do. */
bool sched_is_dirty(const struct sched *sched);
/* Runs one pass: timers that are due, then starts and preemptions. */
void sched_pass(struct sched *sched, int64_t now_ms);
/* When a pass is due without further input: begin times, reservations, overrun estimates, ranks. TIME_NEVER:
 * never. */
int64_t sched_next_ms(const struct sched *sched);

/* A waiting job, and the GPUs that it will probably get, which another job has now. */
struct sched_guess {
    uint64_t job;
    const struct allocation *place; // valid until the next change
};

/* The jobs that will start when running ones end, at most `max`, in order of rank; their places differ. */
size_t sched_guess_next(const struct sched *sched, struct sched_guess *ret, size_t max);

/* --- early starts: sched_early.c --- */

struct sched_early_rules {
    int64_t within_ms; // maximum time that a job may start before its GPUs are probably free
    /* May this waiting job start early on the node at this position, according to the caller? */
    bool (*may_start)(void *arg, uint64_t job, uint32_t node);
    /* Is this running job being ended? */
    bool (*is_ending)(void *arg, uint64_t job);
    void *arg;
    const struct alloc_gpu *awaited; // GPUs for which running or parked jobs wait
    size_t n_awaited;
};

/* A waiting job and the GPUs that it will probably get, which other jobs have now. */
struct sched_early {
    uint64_t job;
    int64_t free_ms;         // when they are probably free
    struct allocation place; // on one node; the caller clears it
};

/*
 * The first job in order of rank that is next for GPUs expected to be free within that time, and whose CPUs
 * and host memory are free already. Books nothing. False: there is none; *ret_again_ms is then the time to
 * try again if nothing else happens; TIME_NEVER: never.
 */
bool sched_find_early(const struct sched *sched, int64_t now_ms, const struct sched_early_rules *rules,
    struct sched_early *ret, int64_t *ret_again_ms);

/* Counters since the start, for statistics. */
struct sched_counts {
    uint64_t passes, examined, index_work, queue_work, starts, preemptions, classes_tried;
};
const struct sched_counts *sched_counts(const struct sched *sched);

/* --- queries --- */
struct sched_job_status { // of one job
    uint32_t blockers;    // enum sched_blocker
    bool is_running;
    uint64_t position; // 1 is next; 0: not in the queue, or held back by a limit
    int64_t begin_ms, deadline_ms, backoff_ms;
    int64_t expected_end_ms;             // while it runs; TIME_NEVER: unknown
    int64_t shadow_ms;                   // start of its reservation; TIME_NEVER: none
    const struct allocation *allocation; // while it runs
    const struct class_key *key;
};
bool sched_job_status(const struct sched *sched, uint64_t job, int64_t now_ms, struct sched_job_status *ret);
/* Its place in the queue: 1 is next; 0: not in the queue, or held back by a limit. */
uint64_t sched_place(const struct sched *sched, uint64_t job);
/* Would the scheduler start an element of this array next, after one of those that run has ended? It is first
 * in the queue, or only its limit of running elements keeps it out of an empty one. */
bool sched_array_is_next(const struct sched *sched, uint64_t array);
/* How long it probably runs, as known before its start. */
int64_t sched_likely_ms(const struct sched *sched, uint64_t job);
/* The expected end of a running job, or of a waiting one that starts at `start_ms` (TIME_NEVER: not known),
 * from which expected starts are computed. TIME_NEVER: unknown. */
int64_t sched_expected_end(const struct sched *sched, uint64_t job, int64_t now_ms, int64_t start_ms);

/* The state of a dependency. */
enum sched_wait { SCHED_WAIT_OPEN, SCHED_WAIT_TRUE, SCHED_WAIT_NEVER };
enum sched_wait sched_wait_of(const struct sched *sched, uint64_t job, uint64_t awaited);

/* The history key for jobs of this class. */
void sched_history_key(const struct sched *sched, const struct class_key *key, struct history_key *ret);

/*
 * A copy of the scheduler with the same cluster, running jobs, accounts, history and reservations, the first
 * `max_jobs` waiting jobs by rank (plus `always`, 0: none), and its own callbacks. For forecasts and "what
 * if".
 */
struct sched *sched_fork(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    const struct sched_callbacks *callbacks);
/* The same in parts, each below a millisecond. advance() returns true when the copy is complete; the original
 * may change between two parts. end() returns the copy, which the caller frees, even if it is incomplete. */
struct sched_copying;
struct sched_copying *sched_fork_begin(const struct sched *sched, int64_t now_ms, size_t max_jobs,
    uint64_t always, const struct sched_callbacks *callbacks);
bool sched_fork_advance(struct sched_copying *copying);
struct sched *sched_fork_end(struct sched_copying *copying);
/* In a fork: assumes that reservations last to their ends; those whose users have no waiting jobs only if
 * `keeps_all`. */
void sched_keep_reservations(struct sched *sched, bool keeps_all);
/* In a fork: when running jobs end. */
enum assumed_ends {
    ENDS_UNKNOWN,  // when the caller reports it, as in the original
    ENDS_EXPECTED, // exactly when expected
    ENDS_CERTAIN,  // at their time limits
};
void sched_assume_ends(struct sched *sched, enum assumed_ends ends);
/* In a fork with assumed ends: the running job that ends next. 0: none runs, or none ends. */
uint64_t sched_next_end(const struct sched *sched, int64_t *ret_end_ms);

int sched_invariant(const struct sched *sched, struct error *err);
