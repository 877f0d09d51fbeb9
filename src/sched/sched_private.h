/* SPDX-License-Identifier: MIT */
/* The scheduler's inside, shared by the files that make up sched.h, and nobody else. */
#pragma once

#include "sched/sched.h"
#include "sched/timers.h"
#include "sched/why.h"

#define RERANK_MS 60000 // ranks follow usage this often
#define PLAN_ALL  512U  // reservations of the conservative mode: more would make a pass quadratic

enum timer_kind { TIMER_JOB, TIMER_RUN, TIMER_CLASS, TIMER_RERANK, TIMER_RESERVATION, TIMER_LIMIT };

/* What only some jobs have. */
struct job_rules {
    int64_t begin_ms, deadline_ms, backoff_ms; // 0: none
    size_t timer;
    struct ask_after *after; // all that were named and are not settled
    size_t n_after;
    bool is_array, is_at_limit; // at_limit: as many elements run as may
    uint32_t elements, element_limit, elements_open;
    uint64_t array;       // an element of it
    int64_t done_ms;      // work kept over preemptions
    double attained;      // GPU-milliseconds used over all runs so far
    unsigned stage;       // how far it is known to get, from earlier runs
    uint32_t preemptions; // that lost its work
};

struct sched_job {
    struct queue_entry entry; // entry.class is NULL while it is not in the queue
    struct queue_class *class;
    struct job_rules *rules; // NULL: none
    struct sched_run *run;   // while it holds an allocation
    uint32_t blockers;       // enum sched_blocker
    struct sched_job *chain; // in its bucket
};

/* An attempt that holds an allocation. */
struct sched_run {
    struct sched_job *job;
    struct allocation allocation;
    int64_t allocated_ms;
    int64_t started_ms;      // 0: the command has not begun
    int64_t expected_end_ms; // by estimate, which the time that it has run corrects
    unsigned stage;          // that its burst knows it to have got to
    int64_t index_ms;        // who gives way first (sched_learnt.c)
    size_t timer;
    int64_t gpu_milli; // charged to its owner
    bool is_giving_way;
    bool is_idle; // does not use its GPUs: gives way as a preemptible job does
    size_t place; // in sched->runs
};

/* The reservation of a blocked class's head: from when on what is kept for it. */
struct plan_hold {
    struct queue_class *class;
    int64_t from_ms, until_ms;
    struct allocation allocation;
};

/* Runs on one node, what is held of it, and its build when the scheduler last looked. */
struct node_runs {
    struct sched_run **runs;
    size_t count, capacity;
    uint32_t *holds; // places in sched->holds, ascending
    size_t n_holds, holds_capacity;
    uint32_t gpus, cpu_milli;
    uint64_t models;
    bool is_late; // the index does not know when its GPUs will be free
};

struct dependent {
    uint64_t job, waiting; // `waiting` waits for `job`
    enum after_kind kind;
    struct dependent *chain;
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
    bool is_fork;               // the history is another's: nothing is learnt
    struct sched_job **buckets; // all jobs, by id
    size_t n_buckets, n_jobs;
    struct sched_run **runs;
    size_t n_runs, runs_capacity;
    uint64_t n_over;      // grows when one is over
    size_t n_preemptible; // runs that may be told to give way
    struct node_runs *nodes;
    size_t n_nodes;
    uint32_t *late; // nodes about whose times the index is to be told
    size_t n_late, late_capacity;
    size_t n_models; // of the cluster, when it last looked
    struct dependent **dependents;
    size_t n_dependent_buckets, n_dependents;
    struct plan_hold *holds; // in order of rank
    size_t n_holds;
    struct sched_reservation *reservations;
    size_t n_reservations, reservation_timer;
    struct timers timers;
    size_t rerank_timer, limit_timer;
    int64_t limit_ms; // of limit_timer
    bool is_dirty;
    bool is_deciding;           // in a pass
    bool is_own_stale;          // of some account
    bool are_holds_in_question; // some class may fit beside the holds now though nothing came free
    int64_t now_ms;
    struct sched_counts counts;
};

/* --- sched_jobs.c: jobs and what keeps them from the queue --- */
struct sched_job *sched_find(const struct sched *sched, uint64_t job);
struct sched_job *sched_add_job(struct sched *sched, const struct sched_job_spec *spec);
void sched_remove_job(struct sched *sched, struct sched_job *job); // waits and runs no more
struct job_rules *sched_rules(struct sched_job *job);              // made when it has none
void sched_take_rules(struct sched_job *job, const struct sched_job_spec *spec);
/* Into the queue or out of it, as its blockers say. */
void sched_place_in_queue(struct sched *sched, struct sched_job *job);
void sched_leave_queue(struct sched *sched, struct sched_job *job);
void sched_set_job_timer(struct sched *sched, struct sched_job *job);
void sched_job_timer(struct sched *sched, struct sched_job *job);
/* An element of this array is over or came to be. */
void sched_element_over(struct sched *sched, uint64_t array);

/* --- sched_depend.c --- */
void sched_depend(struct sched *sched, struct sched_job *job);
void sched_depend_no_more(struct sched *sched, struct sched_job *job);
void sched_depend_clear(struct sched *sched);

/* --- sched_rank.c: classes' estimates and ranks --- */
void sched_join_class(struct sched *sched, struct sched_job *job, const struct class_key *key);
void sched_leave_class(struct sched *sched, struct sched_job *job);
/* Estimate, need and rank for a head of that submit time; moves it in the tree. */
void sched_rank_class(struct sched *sched, struct queue_class *class, int64_t submit_ms);
void sched_rank_head(struct sched *sched, struct queue_class *class); // its head has changed
void sched_rerank_all(struct sched *sched);
/* Jobs of its priority that are submitted after that stand behind it, by what is expected of it now.
 * TIME_NEVER: there is no such time, or it is preemptible, or its owner's priorities or its turn move it. */
int64_t sched_overtaken_until(struct sched *sched, const struct sched_job *job);
void sched_rerank_timer(struct sched *sched);
/* Moves it in the tree; `is_shorter`: its jobs are expected to be. */
void sched_move_class(struct sched *sched, struct queue_class *class, double rank, bool is_shorter);
/* Jobs that were sent to the end of the queue and have waited longest by now are ranked by the policy again.
 */
void sched_begin_turns(struct sched *sched);
/* Of a job of this class that has run for so long; `wanted`: bits of ESTIMATE_. */
void sched_class_estimate(const struct sched *sched, const struct class_key *key, int64_t elapsed_ms,
    unsigned wanted, struct estimate *ret);
/* The class's burst has learnt something: it and the bursts around it are ranked anew. */
void sched_rank_near(struct sched *sched, struct queue_class *class);
int64_t request_gpu_milli(const struct cluster *cluster, const struct sched_request *request);

/* --- sched_own.c: the order that users give their own jobs --- */
/* The class entered the tree, left it, or has another policy_rank. */
void sched_own_changed(struct sched *sched, struct queue_class *class);
/* Where it stands by its policy_rank and by those that hold it back. */
double sched_own_rank(const struct queue_class *class);
/* Makes the order anew of those accounts in which something changed. */
void sched_own_settle(struct sched *sched);

/* --- sched_run.c: running jobs --- */
void sched_run_begin(
    struct sched *sched, struct sched_job *job, const struct allocation *allocation, int64_t started_ms);
/* The ledger of its nodes was changed. */
void sched_tell_placement(struct sched *sched, const struct allocation *allocation);
/* Gives back what it holds; whether it comes back to the queue is the caller's business. */
void sched_run_over(struct sched *sched, struct sched_job *job);
/* May it be told to give way to any job that is not preemptible? */
bool sched_run_yields(const struct sched_run *run);
/* Reckons its end anew: it began, got to another stage, or outlived what was expected. */
void sched_run_expect(struct sched *sched, struct sched_run *run);
int64_t sched_run_elapsed(const struct sched_run *run, int64_t now_ms);
/* As above, but never behind the stage that it was at before a preemption took some of its work. */
/* When each GPU of the node will be free of what runs on it now; `free_ms` has room for all its GPUs. */
void sched_node_free_times(const struct sched *sched, uint32_t node, int64_t *free_ms);
/* That changed, or may have: the index is told when it is asked next. */
void sched_node_late(struct sched *sched, uint32_t node);
void sched_tell_times(struct sched *sched);
struct node_runs *sched_node_runs(struct sched *sched, uint32_t node);

/* --- sched_plan.c: reservations of blocked jobs --- */
/* Plans the class's head: the earliest time at which it fits beside what is held already; marks it. False:
 * never. */
bool sched_plan(struct sched *sched, struct queue_class *class);
void sched_plan_drop_all(struct sched *sched, struct plan_hold **ret_old, size_t *ret_n_old);
/* Nodes whose marks are not what they were are dirty. */
void sched_plan_compare(struct sched *sched, struct plan_hold *old, size_t n_old); // frees them
void sched_plan_free(struct plan_hold *holds, size_t count);

/* --- sched_calendar.c: reservations of people --- */
/* Ids of the reservations that this user may use now or later; at most `max`. */
size_t sched_usable(const struct sched *sched, uint32_t uid, uint64_t *ids, size_t max);
void sched_reservation_timer(struct sched *sched);
/* A job began on it or is over: if it is its user's, it is in use. */
void sched_reservation_used(struct sched *sched, const struct sched_run *run);
void sched_calendar_clear(struct sched *sched);
void sched_calendar_copy(struct sched *to, const struct sched *from);

/* --- sched_limit.c --- */
/* Its place in the queue, 1 is next; 0: it is not in it, or a limit keeps it out. */
uint64_t sched_position(const struct sched *sched, const struct sched_job *job);
/* The account at a limit that keeps the class back (the sentence in `text`), NULL: none. */
struct account *sched_limiting(const struct sched *sched, const struct class_key *key, struct account *user,
    struct account *group, char *text, size_t size);
/* -ERANGE with a sentence: it asks for more than its user or group may ever have. */
int sched_check_limits(const struct sched *sched, const struct class_key *key, struct error *err);
/* When this account's limit ends by itself for the class; TIME_NEVER: not by itself. */
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

/* --- why.c, why_order.c, why_ahead.c --- */
/* Who stands between the job and its GPUs, and on what its expected and its latest start rest. */
struct why_reason *why_add(
    struct why *why, enum why_code code, int64_t until_ms); // NULL: it has enough of them
void why_add_job(struct why_reason *reason, uint64_t job);
/* Jobs of a better rank that want what it wants: how many, which, and why they are ahead. `does_fit`: what it
 * asks for is free. */
void why_order(const struct sched *sched, const struct sched_job *job, bool does_fit, struct why *why);
void why_list_ahead(const struct sched *sched, const struct forecast *forecast, uint64_t id, struct why *why);

/* --- sched_ways.c: whose end makes room for a blocked job --- */
#define NODE_RUNS_LOOKED 256U // a node with more running jobs is let alone
struct way_rules {
    /* May this run be told to give way to that class? */
    bool (*may_move)(const struct sched *sched, const struct queue_class *class, const struct sched_run *run);
    int (*compare)(const void *a, const void *b); // pointers to runs: who goes first on a node
    double (*loss)(const struct sched *sched, const struct sched_run *run);
    const char *why; // told to those who go
};
/* Tells those to give way whose end lets this blocked class's head start, at the least loss. True when some
 * were told. */
bool sched_make_ways(struct sched *sched, const struct queue_class *class, const struct fit *fit,
    const struct way_rules *rules);
/* Tells it, once. */
void sched_give_way(struct sched *sched, struct sched_run *run, const char *why);

/* --- sched_preempt.c --- */
/* Makes preemptible jobs give way to this blocked class's head. True when some were told to. */
bool sched_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit);

/* --- sched_learnt.c --- */
#define LEARNT_HEADS 64U // waiting classes that others are made to give way for
/* Makes running jobs give way to this blocked class's head that are expected to take much longer. True when
 * some did so at once. */
bool sched_learnt_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit);
/* Something was learnt of these classes' bursts. */
void sched_learnt_near(struct sched *sched, struct queue_class *const *near, size_t count);

/* --- sched_preemptive.c --- */
void sched_pass_preemptive(struct sched *sched);
/*
 * It has not run for as long as it may in peace: for the quantum, or twice as long as a preemption of it
 * costs, so that it comes on each time; and twice as long again with each preemption that lost its work, so
 * that it is done after a few.
 */
bool sched_run_is_kept(const struct sched *sched, const struct sched_run *run);
/* When its place among the others changes by itself. */
int64_t sched_preemptive_change(const struct sched *sched, const struct sched_run *run);
