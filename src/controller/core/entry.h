/* SPDX-License-Identifier: MIT */
/* A job with what the controller needs around it. */
#pragma once

#include "job/job.h"

struct core_ranks;

struct core_entry {
    struct job *job;
    struct core_extra *extra; // NULL: nothing of it was ever set; see core_extra()
    struct spec_bytes *spec;  // while resident; NULL: fetch it from the store when it is needed
    uint64_t changed_in;      // batch of its latest change: it may be acted on when that one is durable
    struct core_entry *before, *after; // all jobs, in order of id
    struct core_entry *chain;          // in its bucket
    bool is_fetching;                  // its spec was asked for
};

/* limits.c: its deadline while it waits, its time limit while it runs. */
struct core_due {
    int64_t at_ms;    // boot clock
    int64_t limit_ms; // the time limit that this follows from
    size_t place;     // in the heap of those, plus 1; 0: none is set
};

/* delay.c: a stop that lasts. */
struct core_stop {
    int64_t ends_ms; // wall clock: when what is being stopped is killed at the latest
    uint64_t token;  // of the attempt that this is about
};

/* What only jobs have that have a deadline, have got resources, have ended, or are arrays or elements: few of
 * those in memory when many wait. */
struct core_extra {
    struct core_due due;
    struct core_stop stop;
    int64_t active_ms;                  // wall clock: since when it has resources, or mgpud runs
    struct job_usage *usage;            // while it runs: what its agent said last; else NULL
    uint64_t usage_token;               // of the attempt that this is about
    struct core_ranks *ranks;           // ranks.c: of an attempt on several nodes; else NULL
    uint32_t n_counted;                 // counts.c: elements that wait, of an array
    struct core_entry *array, *members; // an element's array, while in memory; an array's elements
    struct core_entry *member_before, *member_after; // elements of the same array
    struct core_entry *active_before, *active_after; // jobs that hold resources
    struct core_entry *done_after;                   // ended jobs still in memory, in order of their end
};

/* To be read: what the job has, or what it begins with. */
const struct core_extra *core_extra(const struct core_entry *entry);
/* To be written: made when the job has none. */
struct core_extra *core_make_extra(struct core_entry *entry);
