/* SPDX-License-Identifier: MIT */
/* A job with the controller's data about it. */
#pragma once

#include "base/containers/map.h"
#include "job/job.h"

struct core_ranks;
struct pair;
struct pair_list;
struct park_answers;

struct core_entry {
    struct job *job;
    struct core_extra *extra;          // NULL: none of it was ever set; see core_extra()
    struct spec_bytes *spec;           // while in memory; NULL: fetch it from the store when needed
    uint64_t changed_in;               // batch of its latest change: effects are allowed once that is durable
    struct core_entry *before, *after; // all jobs, ordered by id
    struct map_link link;              // in the table of jobs
    bool is_fetching;                  // its spec was requested from the store
};

/* limits.c: the deadline of a waiting job, the time limit of a running one. */
struct core_due {
    int64_t limit_ms; // the time limit it is based on
    size_t place;     // of its timer; 0: not set
    bool is_deadline; // which timers
};

/* delay.c: a slow stop. */
struct core_stop {
    int64_t ends_ms; // wall clock: latest time of the kill
    uint64_t token;  // of the attempt concerned
};

/* behind.c: for how long the latest elements of an array had their GPUs. */
struct element_pace {
    int64_t mean_ms, off_ms;
    int64_t near_ms;     // after this time an element probably ends
    int64_t patience_ms; // for which commits of its elements may wait
    uint32_t samples;
};

/* Data of jobs that have a deadline, hold resources, have ended, or are arrays or elements: few of the jobs
 * in memory when many wait. */
struct core_extra {
    struct core_due due;
    struct core_stop stop;
    uint64_t next_token;          // of its next attempt, which a node prepares; 0: none does
    char *refused_by;             // "gpu1,gpu3": nodes that cannot run it; NULL: none known
    int64_t refused_since_ms;     // wall clock: when the first of them refused it; 0: none has
    int64_t readmits_ms;          // wall clock: when they are tried again; 0: never
    uint32_t returns;             // attempts since its last start that were returned
    int64_t active_ms;            // wall clock: since when it has held resources, or the start of mgpud
    struct job_usage *usage;      // while it runs: last report of its agent; else NULL
    uint64_t usage_token;         // of the attempt concerned
    struct core_ranks *ranks;     // ranks.c: of an attempt on several nodes; else NULL
    struct park_answers *parking; // park.c: of its nodes to the latest order; NULL: none yet
    char *park_bar;               // park_rule.c: why the rule must not park it; NULL: it may be parked
    bool is_asking;               // early.c: it waits, and may start before its GPUs are free
    bool is_early_unasked;        // early_commands.c: it runs before it has its GPUs, without a request
    bool is_allocated_here;       // by this mgpud, not by an earlier one or in a backup
    uint32_t n_counted;           // counts.c: waiting elements of an array
    bool is_counted_behind;       // counts.c: as a job that waits, because its GPUs are another element's
    int64_t parked_since_ms;      // counts.c: wall clock: since when it is parked; 0: it is not
    /* behind.c: the element that is committed behind this one, and the one that this one is behind. */
    struct core_entry *follower, *leader;
    struct element_pace pace;
    size_t holder;          // behind.c: its place among those that have GPUs, from 1 on; 0: it has none
    uint64_t recalled;      // token of the attempt that its node was asked to give back
    uint32_t recalled_link; // the connection on which it was asked
    int64_t recalled_ms;    // boot clock: when it was asked
    uint64_t wanted;        // token of the attempt that a user wants to change
    struct core_entry *array, *members; // of an element its array, while in memory; of an array its elements
    struct core_entry *member_before, *member_after; // elements of the same array
    struct pair_list *pairs;                         // pairs.c: the arrays it waits for; NULL: none
    struct pair *pair_first, *pair_last;             // pairs.c: of an array those that wait for it
    struct core_entry *active_before, *active_after; // jobs that hold resources
    struct core_entry *done_after;                   // ended jobs still in memory, in order of their end
};

/* For reading: the job's data, or the initial values. */
const struct core_extra *core_extra(const struct core_entry *entry);
/* For writing: created if the job has none. */
struct core_extra *core_make_extra(struct core_entry *entry);

/* The job is requeued for another reason, or its attempt counts as failed: its next attempt may be on any
 * node. */
void core_admit_again(struct core_entry *entry);
