/* SPDX-License-Identifier: MIT */
/*
 * Waiting jobs. Jobs with the same request and owner form a class, in order of submission; the classes are in
 * one tree ordered by rank. Every tree node holds the minimum of the needs below it, so "the best-ranked
 * class that these free GPUs could help" is found without visiting the others: the cost of a pass depends on
 * what has changed, not on the length of the queue.
 *
 * The tree is a treap (Seidel and Aragon, Algorithmica 16, 1996). Its heap order is a hash of the class's
 * number, so equal inputs give equal trees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers/map.h"
#include "sched/cluster/node_index.h"
#include "sched/cluster/request.h"

struct account; // sched/queue/fairshare.h
struct queue_class;

/* A waiting job, or the remaining elements of an array. Embedded in the scheduler's job. */
struct queue_entry {
    uint64_t job;
    int64_t submit_ms;
    struct queue_class *class; // NULL while it is not in the queue
    struct queue_entry *before, *after;
    uint64_t place; // consecutive numbers along the class, while is_counted
};

/* The properties shared by the jobs of a class. */
struct class_key {
    uint32_t uid, gid;
    int32_t priority;
    int32_t own_priority; // above 0: takes precedence only over its owner's jobs with a lower one
    bool is_preemptible;
    bool had_turn;         // sent to the end of the queue: after all jobs that were waiting then
    bool has_begun;        // it runs without its GPUs: before all others of its priority
    int64_t limit_ms;      // time limit, 0: none
    int64_t estimate_ms;   // external estimate (of a simulator), 0: learnt from history
    uint64_t command_hash; // similar jobs of a user take similar times
    uint64_t
        burst; // burst of jobs submitted together (sched/history/history.h), set by the scheduler; 0: none
    unsigned stage; // stage its jobs reached before a preemption, set by the scheduler; 0: unknown
    struct sched_request request;
};

/* The first distinct needs have a bit each; all others share the last bit. */
#define QUEUE_KINDS 63U

/* A need of classes in the tree. */
struct queue_kind {
    struct node_need need;
    size_t classes; // number of classes; 0: unused
};

/* Why its jobs wait, as lists show it (sched/why.c). */
#define QUEUE_TEXT_MAX 640U // of a reason for waiting

struct queue_brief {
    int64_t made_ms;
    int code; // enum why_code
    char text[QUEUE_TEXT_MAX];
};

struct queue_class {
    struct class_key key;
    uint64_t hash;   // of the key
    uint64_t number; // in order of creation, from 1
    uint32_t users;  // jobs that refer to it: waiting, running or held out of the queue; freed at 0
    /* Maintained by the scheduler. */
    struct account *account, *group;
    int32_t tier;                   // priority of its partition
    struct queue_class *burst_next; // of the same burst
    struct node_need need;
    int64_t expected_ms; // expected run time of its jobs, for ordering
    int64_t horizon_ms;  // assumed run time of its jobs where they might delay others
    double rank;         // lower first; ties: the older head first
    double policy_rank;  // as computed by the policy
    double behind;       // rank behind which its owner's jobs of higher own priority keep it
    bool is_fresh;       // not tried against the whole cluster since its last change
    bool is_parked;      // its owner has reached a limit: not in the tree
    struct queue_class *peer_before, *peer_after; // of the same user
    struct queue_class *parked_next;              // in its account's list
    int64_t asked_ms;          // when jobs were preempted for its head, which still waits; 0: never
    size_t timer;              // its position in the scheduler's timer heap plus 1, 0: none
    struct queue_brief *brief; // NULL: not known
    struct plan_hold *hold;    // the reservation of its head, NULL: none (sched_private.h)
    /* Waiting jobs in order of (submit time, id). */
    struct queue_entry *first, *last;
    size_t length;
    bool is_counted; // the `place` of its jobs is valid
    /* In the tree. */
    struct queue_class *parent, *left, *right;
    uint64_t heap;
    size_t size;            // number of classes in this subtree
    uint64_t jobs;          // number of jobs in this subtree
    struct node_need least; // component-wise minimum of the subtree; models: union, 0: any
    unsigned kind;          // its need in queue->kinds, QUEUE_KINDS: none
    uint64_t kinds;         // kinds in the subtree, as bits
    int64_t least_horizon_ms;
    int64_t oldest_ms;       // submit time of the oldest head in this subtree
    int64_t oldest_fixed_ms; // the same without preemptible jobs, which yield to all others
    bool has_fresh;
    struct map_link link; // in queue->classes
};

struct queue {
    struct queue_class *root;
    struct map classes; // all referenced ones, by key
    uint64_t last_number;
    size_t length; // waiting jobs in the tree and in parked classes
    struct queue_kind kinds[QUEUE_KINDS];
    uint64_t kinds_version; // incremented when a kind is added
};

/* The priority that orders it among all classes. */
static inline int64_t class_priority(const struct queue_class *class)
{
    return (int64_t) class->key.priority + class->tier;
}

uint64_t class_key_hash(const struct class_key *key);

void queue_init(struct queue *queue);
void queue_clear(struct queue *queue); // entries are not owned

/* The class with this key, created (fresh, outside the tree, without jobs) if it is new; adds a user. */
struct queue_class *queue_hold_class(struct queue *queue, const struct class_key *key, bool *ret_is_new);
void queue_drop_class(struct queue *queue, struct queue_class *class); // drops a user; freed at 0

/* Adds a job to its class, and the class to the tree if it was empty and is not parked; its rank, need and
 * horizon must be set before. A returning job gets its old position by submit time and id. O(1) for the
 * newest. */
void queue_add(struct queue *queue, struct queue_entry *entry, struct queue_class *class);
/* Removes it; no effect if it is not in the queue. An empty class leaves the tree but is kept while it has
 * users. */
void queue_remove(struct queue *queue, struct queue_entry *entry);

/* Updates a class's rank (and position) and its need, horizon or freshness: set the members, then call
 * this. */
void queue_update(struct queue *queue, struct queue_class *class, double rank);
void queue_refresh(
    struct queue *queue, struct queue_class *class); // other members than the rank have changed
void queue_park(struct queue *queue, struct queue_class *class);
void queue_unpark(struct queue *queue, struct queue_class *class); // marks it fresh

/* Submit time of the oldest job in the tree; INT64_MAX: there is none. Preemptible jobs count
 * only for preemptible jobs. */
int64_t queue_oldest_ms(const struct queue *queue, bool is_preemptible);

/* The first class by rank. */
struct queue_class *queue_first(const struct queue *queue);
struct queue_class *queue_first_from(
    const struct queue *queue, double rank); // the first class with at least that rank
struct queue_class *queue_next(const struct queue_class *class);

/* Resources that became free: for jobs of any length, and for jobs that end before `window_ms`, when they are
 * held for others. */
struct queue_offer {
    struct node_offer any;
    struct node_offer brief;
    int64_t window_ms;
};

#define QUEUE_OFFERS_MAX 8U

/* A search: the caller sets only the first three members, again whenever the offers change. */
struct queue_search {
    const struct queue_offer *offers;
    size_t n_offers; // maximum QUEUE_OFFERS_MAX
    uint64_t *work;  // incremented for each tree node visited
    /* Kinds that the offers could help, valid for this version of the queue's kinds. */
    uint64_t version, any, brief[QUEUE_OFFERS_MAX];
};

/* The best-ranked class after `after` (NULL: from the start) that is fresh or that an offer could help. */
struct queue_class *queue_seek(
    const struct queue *queue, const struct queue_class *after, struct queue_search *search);

/* 1 plus the number of jobs ahead of this one, not counting parked classes. O(log classes + position in its
 * class). */
uint64_t queue_position(const struct queue *queue, const struct queue_entry *entry);

/* Checks the structure of the tree, for tests. */
int queue_invariant(const struct queue *queue, struct error *err);
