/* SPDX-License-Identifier: MIT */
/* The internals of the scheduler, for the files that implement sched.h only. */
#pragma once

#include "base/containers/map.h"
#include "base/containers/timers.h"
#include "sched/sched.h"
#include "sched/why.h"

#define RERANK_MS 60000 // interval at which ranks follow usage
#define PLAN_ALL  512U // maximum number of reservations in conservative mode: without it, a pass is quadratic

enum timer_kind {
    TIMER_JOB,
    TIMER_RUN,
    TIMER_CLASS,
    TIMER_RERANK,
    TIMER_RESERVATION,
    TIMER_LIMIT,
    TIMER_START,
    TIMER_BAR,
    TIMER_RETURN
};

/* Data that only some jobs have. */
struct job_rules {
    int64_t begin_ms, deadline_ms, backoff_ms; // 0: none
    size_t timer;
    struct ask_after *after; // all that are not decided yet
    size_t n_after;
    bool is_array, is_at_limit; // at_limit: the maximum number of elements is open
    bool has_kept;              // of an array: elements are kept out of the queue by its limit
    uint32_t elements, element_limit, elements_open, elements_running;
    uint64_t array;       // the array it is an element of
    int64_t done_ms;      // work kept across preemptions
    double attained;      // GPU-milliseconds used in all runs so far
    unsigned stage;       // stage reached in earlier runs
    uint32_t preemptions; // preemptions that lost its work
    /* sched_parked.c */
    int64_t ran_ms,
        waited_ms; // on its GPUs, and parked, in earlier periods since it began from the beginning
    struct parked_job *parked; // NULL: it is not parked
    bool refuses_park;         // it was tried
    bool is_bound;             // its class is bound to the node that it left; its original request:
    char *own_nodelist;
    uint32_t *own_allow;
    size_t n_own_allow;
};

/* A job that the scheduler has parked. */
struct parked_job {
    struct sched_job *job;
    struct allocation left;     // its CPUs and host memory stay booked
    struct allocation owed;     // the GPUs that are owed to it
    int64_t since_ms, needs_ms; // needs_ms: what it will probably still need
    int64_t due_ms;             // it returns then, whatever runs on the GPUs that are owed to it
    uint64_t guest;             // the job that it was parked for
    bool is_guest_due;          // and which comes next on its GPUs
    bool is_kept;               // for which its GPUs are kept until others are parked for it as well
};

struct sched_job {
    struct queue_entry entry; // entry.class is NULL while it is not in the queue
    struct queue_class *class;
    struct job_rules *rules; // NULL: none
    struct sched_run *run;   // while it has an allocation
    uint32_t blockers;       // enum sched_blocker
    struct map_link link;    // in sched->jobs
};

/* A running attempt. */
struct sched_run {
    struct sched_job *job;
    struct allocation allocation;
    int64_t allocated_ms;
    int64_t started_ms;      // 0: the command has not started
    int64_t expected_end_ms; // estimate, corrected by the elapsed time
    size_t end_timer;        // in a forecast: in sched->ends
    unsigned stage;          // stage recorded in its burst
    int64_t index_ms;        // preemption order (sched_learnt.c)
    size_t timer;
    bool is_start_counted; // among the starts of its node
    size_t start_timer;
    int64_t gpu_milli, charged_milli; // GPUs held; charged to its owner, by its dominant resource
    bool is_giving_way;
    bool is_being_parked; // it yields, and will be parked
    uint64_t guest;       // for this job
    bool is_idle;         // does not use its GPUs: treated as preemptible
    size_t place;         // position in sched->runs
};

/* The reservation of a blocked class's head: its start and what is held for it. */
struct plan_hold {
    struct queue_class *class;
    int64_t from_ms, until_ms;
    struct allocation allocation;
};

/* Runs on one node, its holds, and its hardware when the scheduler last checked. */
struct node_runs {
    struct sched_run **runs;
    size_t count, capacity;
    uint32_t *holds; // positions in sched->holds, ascending
    size_t n_holds, holds_capacity;
    uint32_t gpus, cpu_milli;
    uint64_t models;
    bool is_late; // its times in the index are stale
};

struct dependent {
    uint64_t job, waiting; // `waiting` waits for `job`
    enum after_kind kind;
    struct map_link link;   // in sched->dependents
    struct dependent *next; // of those decided together
};

/* A request for which no running jobs could be preempted: a harder one of a class that may preempt no others
 * need not be tried (sched_learnt.c). */
struct learnt_failure {
    uint32_t gpus; // 0: none is known
    uint32_t cpu_milli;
    uint64_t memory;
    int64_t expected_ms, priority;
    uint32_t searches; // of this pass
};

struct sched {
    struct sched_settings settings;
    struct sched_callbacks callbacks;
    struct cluster cluster;
    struct cluster known; // see sched_known()
    void *placement_state;
    struct queue queue;
    struct fairshare fairshare;
    struct history *history;
    bool is_fork; // the history belongs to the original: nothing is learnt
    enum assumed_ends assumed_ends;
    struct timers ends; // of running jobs, unless assumed_ends is ENDS_UNKNOWN
    struct map jobs;    // all of them, by id
    struct sched_run **runs;
    size_t n_runs, runs_capacity;
    uint64_t n_over;               // incremented when a run ends
    bool is_head_start_due;        // of an account whose head start was used
    size_t n_preemptible;          // runs that may be preempted
    struct learnt_failure failure; // of this pass
    struct node_runs *nodes;
    size_t n_nodes;
    uint32_t *late; // nodes whose times in the index are stale
    size_t n_late, late_capacity;
    size_t n_models;         // of the cluster, at the last check
    struct map dependents;   // by the job that they wait for
    struct plan_hold *holds; // ordered by rank
    size_t n_holds;
    struct sched_reservation *reservations;
    size_t n_reservations, reservation_timer;
    struct parked_job **parked;
    size_t n_parked, return_timer;
    bool are_debts_in_question; // a job on GPUs that are owed may be one that cannot return them
    uint64_t guests_over;       // in the last pass: no more GPUs may be owed, because of this job; 0: none
    struct timers timers;
    size_t rerank_timer, limit_timer, bar_timer;
    int64_t limit_ms; // of limit_timer
    bool is_dirty;
    bool is_deciding;           // in a pass
    bool is_own_stale;          // of some account
    bool are_holds_in_question; // a class may fit beside the holds although nothing became free
    int64_t now_ms;
    struct sched_counts counts;
};

/* --- sched_jobs.c: jobs and their blockers --- */
struct sched_job *sched_find(const struct sched *sched, uint64_t job);
struct sched_job *sched_job_at(const struct map_link *link); // an item of sched->jobs
void sched_job_free(struct map_link *link);                  // out of all queues and tables
struct sched_job *sched_add_job(struct sched *sched, const struct sched_job_spec *spec);
void sched_remove_job(struct sched *sched, struct sched_job *job); // neither waiting nor running any more
struct job_rules *sched_rules(struct sched_job *job);              // created if it has none
void sched_take_rules(struct sched_job *job, const struct sched_job_spec *spec);
/* Adds it to the queue or removes it, according to its blockers. */
void sched_place_in_queue(struct sched *sched, struct sched_job *job);
void sched_leave_queue(struct sched *sched, struct sched_job *job);
void sched_set_job_timer(struct sched *sched, struct sched_job *job);
void sched_job_timer(struct sched *sched, struct sched_job *job);

/* --- sched_elements.c --- */
/* True if it is no element, or if its array may run more elements. */
bool sched_element_may_start(const struct sched *sched, const struct sched_job *job);
void sched_element_kept(struct sched *sched, const struct sched_job *job); // it must be placed again
void sched_element_begins(struct sched *sched, const struct sched_job *job);
void sched_element_stops(struct sched *sched, uint64_t array);
void sched_array_freed(struct sched *sched, struct sched_job *array); // queues jobs that were kept out
/* An element of this array has ended or was created. */
void sched_element_over(struct sched *sched, uint64_t array);

/* --- sched_depend.c --- */
void sched_depend(struct sched *sched, struct sched_job *job);
void sched_depend_no_more(struct sched *sched, struct sched_job *job);
/* When the first dependency with a known time is satisfied; TIME_NEVER: none has one. */
int64_t sched_depend_due_ms(const struct job_rules *rules);
/* True if it waits only for times that have passed, which sched_depend_due() has not processed yet. */
bool sched_depend_is_due(const struct job_rules *rules, int64_t now_ms);
void sched_depend_due(struct sched *sched, struct sched_job *job); // resolves those that are satisfied
void sched_depend_clear(struct sched *sched);

/* --- sched_rank.c: classes' estimates and ranks --- */
void sched_place_classes(struct sched *sched); // after a change of the partitions
void sched_join_class(struct sched *sched, struct sched_job *job, const struct class_key *key);
void sched_leave_class(struct sched *sched, struct sched_job *job);
/* Computes estimate, need and rank for a head with that submit time and moves the class in the tree. */
void sched_rank_class(struct sched *sched, struct queue_class *class, int64_t submit_ms);
void sched_rank_head(
    struct sched *sched, struct queue_class *class); // to be called when its head has changed
void sched_rerank_all(struct sched *sched);
/* Jobs of its priority submitted after this time cannot precede it, as currently estimated. TIME_NEVER: no
 * such time, or it is preemptible, or moved by its owner's priorities or a requeue. */
int64_t sched_overtaken_until(struct sched *sched, const struct sched_job *job);
/* The maximum of that time, whatever is learnt and used. */
int64_t sched_promised_until(struct sched *sched, const struct sched_job *job);
/* The longest time limit with which it would precede that class. 0: none would help. */
int64_t sched_limit_to_precede(
    struct sched *sched, const struct sched_job *job, const struct queue_class *other);
/* Its user has no running jobs and has not exceeded its share: on a small machine the head start would
 * otherwise determine the shares. */
bool sched_has_head_start(const struct queue_class *class);
/* The user's first running job has started, or its last one has ended: its head start is then used. */
void sched_head_start_changed(struct sched *sched, struct account *account, bool is_over);
/* Gives head starts again to users who have used theirs, once no other user waits with one. */
void sched_head_starts_return(struct sched *sched);
void sched_rerank_timer(struct sched *sched);
/* Moves it in the tree; `is_shorter`: the expected run time has decreased. */
void sched_move_class(struct sched *sched, struct queue_class *class, double rank, bool is_shorter);
/* Ranks jobs that were sent to the end of the queue by the policy again, once they have waited longest. */
void sched_begin_turns(struct sched *sched);
/* For a job of this class that has run for this time; `wanted`: ESTIMATE_ bits. */
void sched_class_estimate(const struct sched *sched, const struct class_key *key, int64_t elapsed_ms,
    unsigned wanted, struct estimate *ret);
/* The class's burst has new data: recomputes the ranks of it and of neighbouring bursts. */
void sched_rank_near(struct sched *sched, struct queue_class *class);
int64_t request_gpu_milli(const struct cluster *cluster, const struct sched_request *request);

/* --- sched_own.c: the order in which users put their own jobs --- */
/* To be called when the class entered or left the tree, or its policy_rank changed. */
void sched_own_changed(struct sched *sched, struct queue_class *class);
/* Its rank, from its policy_rank and from the jobs it must follow. */
double sched_own_rank(const struct queue_class *class);
/* Recomputes the order of the accounts in which something changed. */
void sched_own_settle(struct sched *sched);

/* --- sched_run.c: running jobs --- */
void sched_run_begin(
    struct sched *sched, struct sched_job *job, const struct allocation *allocation, int64_t started_ms);
/* In a fork: starts it in the state of the original. */
void sched_run_copy(
    struct sched *sched, struct sched_job *job, const struct sched *from, const struct sched_run *original);
/* Reports changed bookings of its nodes to the placement. */
void sched_update_placement(struct sched *sched, const struct allocation *allocation);
/* Releases its allocation; the caller decides whether the job is requeued. */
void sched_run_over(struct sched *sched, struct sched_job *job);
/* True if any job that is not preemptible may preempt it. */
bool sched_run_yields(const struct sched_run *run);

/* Of pointers to runs, for qsort(): those that end first. */
int sched_compare_ends(const void *a, const void *b);

bool sched_shares_gpu(const struct allocation *a, const struct allocation *b);
/* Recomputes its expected end: it started, reached another stage, or exceeded the estimate. */
void sched_run_expect(struct sched *sched, struct sched_run *run);
/* It has started, or takes so long that it no longer counts among the starts of its node. */
void sched_run_start_over(struct sched *sched, struct sched_run *run);
int64_t sched_run_elapsed(const struct sched_run *run, int64_t now_ms);
/* When each GPU of the node will be free of its current jobs; `free_ms` has space for all its GPUs. */
void sched_node_free_times(const struct sched *sched, uint32_t node, int64_t *free_ms);
/* To be called when that may have changed: the index is updated before its next use. */
void sched_node_late(struct sched *sched, uint32_t node);
void sched_update_times(struct sched *sched);
struct node_runs *sched_node_runs(struct sched *sched, uint32_t node);

/* --- sched_plan.c: reservations for blocked jobs --- */
/* Reserves the earliest time at which the class's head fits beside existing holds. False: never. */
bool sched_plan(struct sched *sched, struct queue_class *class);
void sched_plan_drop_all(struct sched *sched, struct plan_hold **ret_old, size_t *ret_n_old);
/* Marks nodes dirty whose holds have changed. */
void sched_plan_compare(struct sched *sched, struct plan_hold *old, size_t n_old); // frees them
void sched_plan_free(struct plan_hold *holds, size_t count);
void sched_plan_drop(struct sched *sched); // removes all holds: marks their nodes dirty

/* --- sched_calendar.c: reservations made by administrators --- */
/* Ids of the reservations that this user may use now or later, at most `max`. */
size_t sched_usable(const struct sched *sched, uint32_t uid, uint64_t *ids, size_t max);
void sched_reservation_timer(struct sched *sched);
/* A job started or ended on reserved GPUs: if it is its user's, the reservation is in use. */
void sched_reservation_used(struct sched *sched, const struct sched_run *run);
void sched_calendar_clear(struct sched *sched);
void sched_calendar_copy(struct sched *to, const struct sched *from);

/* --- sched_bars.c --- */
void sched_bar_timer(struct sched *sched);
void sched_bars_copy(struct sched *to, const struct sched *from);

/* --- sched_limit.c --- */
/* Its position in the queue, 1 is next; 0: not in the queue, or held back by a limit. */
uint64_t sched_position(const struct sched *sched, const struct sched_job *job);
/* The account whose limit holds the class back (the sentence in `text`), NULL: none. */
struct account *sched_limiting(const struct sched *sched, const struct class_key *key, struct account *user,
    struct account *group, char *text, size_t size);
/* -ERANGE with a sentence if it requests more than its user or group may ever have. */
int sched_check_limits(const struct sched *sched, const struct class_key *key, struct error *err);
/* Nothing but how much its owner may have at a time can keep jobs of this class waiting, and the end of one
 * of them makes room for another one: no other class waits for that. `waiting`: the class, if it is held back
 * by one now; NULL: it is not. */
bool sched_limit_is_own(const struct queue_class *class, const struct queue_class *waiting);
/* When this account's limit stops applying to the class without any event; TIME_NEVER: never. */
int64_t sched_limit_ends(
    const struct sched *sched, const struct class_key *key, const struct account *account);
void sched_park(struct sched *sched, struct queue_class *class, struct account *account);
void sched_unpark(struct sched *sched, struct account *account);
void sched_unpark_all(struct sched *sched);
void sched_unpark_one(struct sched *sched, struct queue_class *class);

/* --- sched_pass.c --- */
void sched_fit_of(const struct sched *sched, const struct queue_class *class, uint64_t *reservations,
    size_t max, struct fit *ret);
void sched_start(struct sched *sched, struct sched_job *job, struct allocation *allocation);
/* Tries to start the head of the class. 1: it started; 0: it does not fit; -1: a limit prevents it, it is
 * parked, or it has left the queue. */
int sched_try_class(struct sched *sched, struct queue_class *class);

/* --- why.c, why_nodes.c, why_order.c, why_park.c, why_ahead.c --- */
/* Reports nodes on which starts of this user fail; in a list only if all do. True if no other is left. */
bool why_explain_bars(
    const struct sched *sched, const struct queue_class *class, bool is_brief, struct why *why);
/* Which jobs are ahead of it, and what its expected and latest start are based on. */
struct why_reason *why_add(struct why *why, enum why_code code, int64_t until_ms); // NULL: no space left
void why_add_job(struct why_reason *reason, uint64_t job);
/* Jobs of a better rank that compete for the same resources: their number, the first of them, and why they
 * are ahead. `does_fit`: the requested resources are free. */
void why_order(struct sched *sched, const struct sched_job *job, bool does_fit, struct why *why);
/* For a list: appends the first job ahead and the rule that puts it ahead, in numbers. */
void why_add_rule(const struct sched *sched, const struct sched_job *job, char *text, size_t size);
/* If the resources that it lacks are kept by jobs outside the ledger, adds that to the reason "no room". */
void why_add_kept(const struct sched *sched, const struct sched_request *request, struct why_reason *reason);
/* Until when it can be overtaken, and the promise for that. */
void why_explain_bound(struct sched *sched, const struct sched_job *job, struct why *why);
/* The running jobs on GPUs that would suit the class, soonest end first; to be freed. */
size_t why_holders(const struct sched *sched, const struct queue_class *class, struct sched_run ***ret);
/* If it waits for GPUs of running jobs: why none is parked for it. */
void why_explain_park(struct sched *sched, const struct sched_job *job, struct why *why);
void why_list_ahead(const struct sched *sched, const struct forecast *forecast, uint64_t id, struct why *why);

/* --- sched_ways.c: which running jobs to preempt for a blocked one --- */
#define NODE_RUNS_LOOKED 256U // nodes with more running jobs are skipped
struct way_rules {
    /* May this run be preempted for that class? */
    bool (*may_move)(const struct sched *sched, const struct queue_class *class, const struct sched_run *run);
    int (*compare)(const void *a, const void *b); // pointers to runs: preemption order on a node
    double (*loss)(const struct sched *sched, const struct sched_run *run);
    const char *why; // reason given to preempted jobs
};
/* Preempts the jobs whose end lets this blocked class's head start at the lowest cost. True if any were. */
bool sched_make_ways(struct sched *sched, const struct queue_class *class, const struct fit *fit,
    const struct way_rules *rules);
/* Preempts it, once. */
void sched_give_way(struct sched *sched, struct sched_run *run, const char *why);

/* --- sched_preempt.c --- */
/* Preempts preemptible jobs for this blocked class's head. True if any were. */
bool sched_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit);

/* --- sched_parked.c: jobs that the scheduler has parked --- */
/* True if the settings and the caller let it park jobs. */
bool sched_parks(const struct sched *sched);
/* True if a run, or the next job of a waiting class, can be parked, as far as is known. */
bool sched_run_can_park(const struct sched *sched, const struct sched_run *run);
bool sched_class_can_park(const struct sched *sched, const struct queue_class *class);
/* True if its jobs need whole GPUs of one node, and name none. */
bool sched_class_is_plain(const struct sched *sched, const struct queue_class *class);
/* How long it may be parked from now on. */
int64_t sched_run_budget(const struct sched *sched, const struct sched_run *run);
/* The minimum that a job runs each time before it returns its GPUs; several of these fit into the time for
 * which it may then be parked. */
int64_t sched_park_slot(const struct sched *sched);
/* The time that a waiting job will probably still need. */
int64_t sched_job_needs(const struct sched *sched, const struct sched_job *job);
/* It has its GPUs again by this time. */
int64_t sched_parked_bound(const struct sched *sched, const struct parked_job *parked);
/* By a user or an administrator: it is owed nothing. */
bool sched_parked_is_held(const struct parked_job *parked);
/* Has this running job certainly ended by `ms`, if this is its time limit (0: it has none)? */
bool sched_run_ends_by(const struct sched *sched, const struct sched_run *run, int64_t limit_ms, int64_t ms);
/* True if it may return to this GPU of its node. */
bool sched_parked_may_have(const struct sched *sched, const struct parked_job *parked, uint32_t gpu);
/* Takes over the values of its description. */
void sched_parked_take(struct sched *sched, struct sched_job *job, const struct sched_job_spec *spec);
/* It starts from the beginning, or is gone: it is owed nothing. */
void sched_parked_forget(struct sched *sched, struct sched_job *job);
void sched_parked_free(struct job_rules *rules); // the memory alone
/* Moves a job to the class of this key; if it is parked, bound to its node. */
void sched_parked_join(struct sched *sched, struct sched_job *job, const struct class_key *key);
/* Recomputes the owed GPUs after a change of settings or nodes. */
void sched_parked_reckon(struct sched *sched);
/* Removes a parked job from the ledger during a trial, or when it starts; and adds it again. */
struct parked_job *sched_parked_lift(struct sched *sched, struct sched_job *job);
void sched_parked_put(struct sched *sched, struct parked_job *parked);
void sched_parked_began(struct sched *sched, struct parked_job *parked); // it has its GPUs again; frees it
/* Closes the GPUs that it left to all jobs, or opens them again. */
void sched_parked_keep(struct sched *sched, struct parked_job *parked, bool is_kept);
/* The same for a running job as if it were parked, for a trial. */
void sched_parked_try(struct sched *sched, struct sched_run *run, struct parked_job *trial);
void sched_parked_try_over(struct sched *sched, struct sched_run *run, struct parked_job *trial);
/* Its blockers have changed: a held job does not return. */
void sched_parked_changed(struct sched *sched, struct sched_job *job);
/* Parks it, once. `next` is the job that comes first on its GPUs then, 0: the one that they are due to.
 * `guest`: the same if that is a guest; 0: one that returns. */
void sched_give_back(struct sched *sched, struct sched_run *run, uint64_t next, uint64_t guest);
int sched_parked_invariant(const struct sched *sched, struct error *err);

/* --- sched_debts.c: the GPUs owed to parked jobs --- */
/* The GPUs owed to the jobs that are parked on a node, in their order. */
struct debts {
    uint32_t node;
    struct alloc_gpu *gpus;
};
/* Computes when each of the jobs parked on the node, and each GPU owed to them, is due. */
void sched_debts_reckon(struct sched *sched, uint32_t node);
/* Moves debts to other GPUs, so that a job that cannot return its GPUs fits on some that were owed. False: it
 * fits nowhere, or needs none of that. If true, sched_debts_keep() or sched_debts_undo() follows. */
bool sched_debts_move(
    struct sched *sched, const struct sched_request *request, const struct fit *fit, struct debts *before);
void sched_debts_keep(struct sched *sched, struct debts *before);
void sched_debts_undo(struct sched *sched, struct debts *before);
/* Moves debts away from jobs that cannot return their GPUs: after a restart, and if one has refused. */
void sched_debts_mend(struct sched *sched);

/* --- sched_trial.c: parks of several jobs for one --- */
#define TRIAL_MAX 64U // jobs of one node that are parked for one
/* If these runs of one node were parked: would all jobs parked from their GPUs return in time, would the GPUs
 * be free for `for_ms` and a slot, and would the class's head start? Changes nothing. */
bool sched_would_start(struct sched *sched, const struct queue_class *class, struct fit *fit,
    struct sched_run *const *hosts, size_t count, int64_t for_ms);
/* Parks them for this job, like sched_give_back(). True if some were parked immediately. */
bool sched_give_back_all(
    struct sched *sched, struct sched_run *const *hosts, size_t count, uint64_t next, uint64_t guest);
/* True while jobs are being parked for this one, which does not start before. */
bool sched_is_awaited(const struct sched *sched, uint64_t guest);

/* --- sched_return.c: when parked jobs are due, and before --- */
/* Parked jobs that are due return; jobs on their GPUs are parked or stopped. */
void sched_return_due(struct sched *sched);
/* Until when the jobs on the GPUs of a parked job keep them although it is due. If a reservation or a drained
 * node has delayed returns, several jobs are overdue for the same GPUs: each has them for at least half a
 * slot, and until it would not be due first again. Otherwise all have had them for longer. */
int64_t sched_return_waits_until(struct sched *sched, const struct parked_job *parked);
/* Parks the jobs on the GPUs of a parked job, most of which would be idle for long. */
void sched_recall(struct sched *sched);

/* --- sched_hosts.c --- */
struct guest {
    struct sched *sched;
    const struct queue_class *class;
    struct fit *fit;
    int64_t needs_ms; // probably
};
/* What keeps a running job from being parked for a guest: the later, the nearer it is to being parked. */
enum host_bar {
    HOST_LEAVING,     // it returns its GPUs already
    HOST_PRIORITY,    // its priority is higher
    HOST_PREFERRED,   // its owner wants it first
    HOST_ENDS_SOON,   // compared with what the guest needs
    HOST_NARROW,      // it has fewer GPUs
    HOST_NEW,         // it has had its GPUs only briefly
    HOST_BOUND,       // it may not be parked for that long
    HOST_LAYERS,      // as many jobs as permitted are parked from its GPUs
    HOST_CANNOT_PARK, // as far as is known
    HOST_NO_START,    // the guest would not start on its GPUs
    HOST_BARS
};
/* The running jobs to park for it, all on one node. 0: none is worth it. */
size_t sched_hosts_choose(const struct guest *guest, struct sched_run *ret[TRIAL_MAX]);
/* If there is no such job: which of these comes nearest, and why it is none. NULL: there is one, or none of
 * these has GPUs. */
const struct sched_run *sched_hosts_nearest(
    const struct guest *guest, struct sched_run *const *runs, size_t count, enum host_bar *ret_bar);
/* The time by which a host may be parked for longer than its guest needs. */
int64_t sched_host_spare(const struct sched *sched, const struct sched_run *run);
/* The owner's priorities put the host before the guest. */
bool sched_is_preferred(const struct queue_class *host, const struct queue_class *guest);

/* --- sched_guest.c --- */
#define GUEST_HEADS 64U // waiting classes for which jobs are parked
/* Why no job is ever parked for those of this class: "it is preemptible"; NULL: some may be. */
const char *sched_guest_bar(const struct queue_class *class);
/* Jobs were parked for the class a short while ago: it does not ask again yet. */
bool sched_guest_has_asked(const struct sched *sched, const struct queue_class *class);
/* Parks a running job for this blocked class's head, which is then its guest. True if it was parked
 * immediately. `fit` becomes that of the guest. */
bool sched_guest_make_way(struct sched *sched, struct queue_class *class, struct fit *fit);
/* If the class's head, whose fit is `fit`, may borrow GPUs: true, with its fit for that. */
bool sched_borrow_fit(
    const struct sched *sched, const struct queue_class *class, const struct fit *fit, struct fit *ret);
/* Tries the guests whose hosts have been parked since, before any other job gets the GPUs. */
void sched_guests_first(struct sched *sched);
/* When a run is next considered as a host. TIME_NEVER: not at any time, only after a change. */
int64_t sched_guest_change(const struct sched *sched, const struct sched_run *run);

/* --- sched_learnt.c --- */
#define LEARNT_HEADS 64U // waiting classes for which jobs are preempted
/* Preempts running jobs that are expected to take much longer than this blocked class's head. True if some
 * stopped immediately. */
bool sched_learnt_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit);
/* To be called when the bursts of these classes have new data. */
void sched_learnt_near(struct sched *sched, struct queue_class *const *near, size_t count);

/* --- sched_preemptive.c --- */
void sched_pass_preemptive(struct sched *sched);
/*
 * True while it is protected from preemption: for the quantum, or for twice the cost of its preemption, so
 * that it makes progress each time; doubled with each preemption that lost its work, so that it ends after a
 * few.
 */
bool sched_run_is_kept(const struct sched *sched, const struct sched_run *run);
/* True if the caller of the scheduler allows its preemption now. */
bool sched_run_may_give_way(const struct sched *sched, const struct sched_run *run);
/* The time at which its order among the others changes. */
int64_t sched_preemptive_change(const struct sched *sched, const struct sched_run *run);
