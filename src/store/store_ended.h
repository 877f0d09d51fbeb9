/* SPDX-License-Identifier: MIT */
/*
 * Jobs that ended, also those that only the store still has: pages of them, sums over them, and their
 * removal. Every request to the store's thread is a short one, so that commits go on in between.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define ENDED_SUMS_MAX 4096U // groups in one answer

/* How a job ended, in the table `ended`. */
enum ended_outcome { ENDED_DONE, ENDED_FAILED, ENDED_CANCELLED };

struct ended_filter {
    bool has_user;
    uint32_t uid;
    int64_t since_ms, until_ms; // ended at or after the one and before the other
    uint32_t outcomes;          // bits of enum ended_outcome; 0: any
    const char *name;           // pattern; NULL: any
};

struct ended_row {
    struct job *job;
    /* GPU time: of all its attempts, of the one that was measured, and what this was busy. */
    int64_t held_ms, measured_ms, used_ms;
};

/* Where a page ended, and the next one begins. */
struct ended_place {
    int64_t ended_ms;
    uint64_t job;
};

/*
 * A page, the newest first, of at most `limit` jobs; arrays are left out, their elements are not. `after`
 * NULL: from the filter's `until_ms` on. A page may have fewer jobs, or none, and more may follow: `next` is
 * NULL when it was the last. Rows, jobs and `next` are the store's; the filter is copied.
 */
void store_fetch_ended(struct store *store, const struct ended_filter *filter,
    const struct ended_place *after, size_t limit,
    void (*on_page)(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next),
    void *arg);

enum ended_by { ENDED_BY_USER, ENDED_BY_GROUP, ENDED_BY_DAY, ENDED_BY_NODE, ENDED_BYS };

struct ended_sum {
    int64_t number; // uid, gid, or days since 1970 in UTC
    char *node;     // ENDED_BY_NODE: where its jobs ran last, "" of those that never ran
    uint64_t jobs;
    int64_t held_ms, measured_ms, used_ms;
    bool has_waits;                      // of jobs that started and were not removed
    int64_t wait_median_ms, wait_p95_ms; // within 2 %
};

/*
 * Sums over all jobs that pass the filter, in order of their key. Those that were removed count with the
 * whole UTC days that `since_ms` and `until_ms` touch, and only when the filter has neither `outcomes` nor
 * `name`, which nobody knows of them any more. `is_cut`: there are more than ENDED_SUMS_MAX groups.
 */
void store_sum_ended(struct store *store, const struct ended_filter *filter, enum ended_by by,
    void (*on_sums)(void *arg, const struct ended_sum *sums, size_t count, bool is_cut), void *arg);

/*
 * Removes jobs that ended before `before_ms`, and of the others the oldest beyond the newest `keep_max`: with
 * their events, specifications and submit keys, a few in each transaction. What they held and used is added
 * to the sums of their days in the same transaction. Calls back when none is left. `kept`, ids as in "3,17"
 * or NULL, stay whatever their age: a start asks how they ended.
 */
void store_retire(struct store *store, int64_t before_ms, uint64_t keep_max, const char *kept,
    void (*on_retired)(void *arg, uint64_t jobs), void *arg);
