/* SPDX-License-Identifier: MIT */
/*
 * Waiting jobs. Jobs that ask for the same thing for the same owner form one class, first come first served;
 * the classes stand in one tree in order of rank. Every tree node knows the least that the classes below it
 * need, so "the best-ranked class that these free GPUs could help" is found without looking at the others: a
 * pass costs what has changed, not the length of the queue.
 *
 * The tree is a treap (Seidel and Aragon, Algorithmica 16, 1996) whose heap order comes from a hash of the
 * class's number, so that equal inputs give equal trees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/cluster/node_index.h"
#include "sched/cluster/request.h"

struct account; // sched/queue/fairshare.h
struct queue_class;

/* One waiting job, or what is left of one array. Embedded in the scheduler's job. */
struct queue_entry {
    uint64_t job;
    int64_t submit_ms;
    struct queue_class *class; // NULL while it does not wait in the queue
    struct queue_entry *before, *after;
    uint64_t place; // grows along its class by one from job to job, while these are counted
};

/* What makes jobs alike. */
struct class_key {
    uint32_t uid, gid;
    int32_t priority;
    int32_t own_priority; // above 0: its owner's jobs of a lower one wait behind it; all others do not
    bool is_preemptible;
    bool had_turn;       // sent to the end of the queue: behind all jobs that waited then
    int64_t limit_ms;    // time limit, 0: none
    int64_t estimate_ms; // given from outside (a simulator's estimate), 0: learnt from history
    uint64_t stem;       // hash of what it runs: alike jobs of a user take alike times
    uint64_t burst; // of jobs submitted together (sched/history/history.h), set by the scheduler; 0: none
    unsigned stage; // how far its jobs are known to get, from before a preemption, likewise; 0: unknown
    struct sched_request request;
};

/* The first so many distinct needs are told apart by a bit each; all others share the last one. */
#define QUEUE_KINDS 63U

/* A need that classes in the tree have. */
struct queue_kind {
    struct node_need need;
    size_t classes; // that have it; 0: the place is free
};

struct queue_class {
    struct class_key key;
    uint64_t number; // in order of creation, from 1
    uint32_t users;  // jobs that refer to it: waiting, running or apart; freed at 0
    /* Kept by the scheduler. */
    struct account *account, *group;
    struct queue_class *burst_next; // of the same burst
    struct node_need need;
    int64_t expected_ms; // what its policy orders it by: how long its jobs are expected to run
    int64_t horizon_ms;  // how long they are taken to run when they might delay somebody
    double rank;         // lower first; ties: the older head
    double policy_rank;  // by the policy alone
    double behind;       // the rank that its owner's jobs of higher own priority hold it behind
    bool is_fresh;       // not tried against the whole cluster since it last changed
    bool is_parked;      // its owner is at a limit: not in the tree
    struct queue_class *peer_before, *peer_after; // of the same user
    struct queue_class *parked_next;              // in its account's list
    int64_t rank_changes_ms;                      // when its rank changes by itself, TIME_NEVER: never
    int64_t asked_ms; // when others were told to give way for its head, which waits still; 0: they were not
    size_t timer;     // its place in the scheduler's timer heap plus 1, 0: none
    struct plan_hold *hold; // the reservation of its head, NULL: none (sched/plan.h)
    /* Waiting jobs in order of (submit time, id). */
    struct queue_entry *first, *last;
    size_t length;
    bool is_counted; // the places of its jobs are right
    /* In the tree. */
    struct queue_class *parent, *left, *right;
    uint64_t heap;
    size_t size;            // classes in this subtree
    uint64_t jobs;          // jobs in this subtree
    struct node_need least; // component-wise least of the subtree; models: union, 0: any
    unsigned kind;          // place of its need in queue->kinds, QUEUE_KINDS: it has none
    uint64_t kinds;         // bits of the kinds in the subtree
    int64_t least_horizon_ms;
    int64_t oldest_ms;       // submit time of the oldest head in this subtree
    int64_t oldest_fixed_ms; // likewise without preemptible ones, which give way to all others anyway
    bool has_fresh;
    struct queue_class *chain; // in its bucket
};

struct queue {
    struct queue_class *root;
    struct queue_class **buckets; // all classes with users, by key
    size_t n_buckets, n_classes;
    uint64_t last_number;
    size_t length; // waiting jobs in the tree and in parked classes
    struct queue_kind kinds[QUEUE_KINDS];
    uint64_t kinds_version; // grows when a kind comes
};

uint64_t class_key_hash(const struct class_key *key);

void queue_init(struct queue *queue);
void queue_clear(struct queue *queue); // entries are not owned

/* The class of this key, made (fresh, outside the tree, no jobs) when it is new; users grows by one. */
struct queue_class *queue_hold_class(struct queue *queue, const struct class_key *key, bool *ret_is_new);
void queue_drop_class(struct queue *queue, struct queue_class *class); // users shrinks; freed at 0

/* Enters a job in its class, and the class into the tree when it was empty and is not parked: its rank, need
 * and horizon must be set before. A job that comes back takes its old place by submit time and id. O(1) for
 * the newest. */
void queue_add(struct queue *queue, struct queue_entry *entry, struct queue_class *class);
/* Takes it out; harmless when it does not wait. An empty class leaves the tree but lives while it has users.
 */
void queue_remove(struct queue *queue, struct queue_entry *entry);

/* Gives a class another rank (and place), need, horizon or freshness: set the members, then call this. */
void queue_update(struct queue *queue, struct queue_class *class, double rank);
void queue_refresh(struct queue *queue, struct queue_class *class); // members but the rank have changed
void queue_park(struct queue *queue, struct queue_class *class);
void queue_unpark(struct queue *queue, struct queue_class *class); // fresh again

/* Since when the job in the tree waits that waits longest; INT64_MAX: there is none. Preemptible jobs count
 * for preemptible jobs only. */
int64_t queue_oldest_ms(const struct queue *queue, bool is_preemptible);

/* In order of rank. */
struct queue_class *queue_first(const struct queue *queue);
struct queue_class *queue_first_from(
    const struct queue *queue, double rank); // the first of at least that rank
struct queue_class *queue_next(const struct queue_class *class);

/* Something came free: what there is for jobs of any length, and what only for jobs that end before
 * `window_ms` (because it is kept for somebody from then on). */
struct queue_offer {
    struct node_offer any;
    struct node_offer brief;
    int64_t window_ms;
};

#define QUEUE_OFFERS_MAX 8U

/* What is sought: set the first three members, and no others, each time that the offers change. */
struct queue_search {
    const struct queue_offer *offers;
    size_t n_offers; // at most QUEUE_OFFERS_MAX
    uint64_t *work;  // grows by the tree nodes looked at
    /* Which kinds the offers could help, as of this version of the queue's kinds. */
    uint64_t version, any, brief[QUEUE_OFFERS_MAX];
};

/* The best-ranked class after `after` (NULL: from the start) that is fresh or that one of the offers could
 * help. */
struct queue_class *queue_seek(
    const struct queue *queue, const struct queue_class *after, struct queue_search *search);

/* Jobs that stand before this one, plus one; parked classes are not counted. O(log classes + place in its
 * class). */
uint64_t queue_position(const struct queue *queue, const struct queue_entry *entry);

/* The tree's own rules, for tests. */
int queue_invariant(const struct queue *queue, struct error *err);
