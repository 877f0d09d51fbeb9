/* SPDX-License-Identifier: MIT */
/*
 * Ended jobs, including those that are no longer in memory: pages, totals, and removal. Each request takes
 * only a short time on the store's thread, so that commits are not delayed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define ENDED_SUMS_MAX 4096U // groups in one result

/* How a job ended, in the table `ended`. */
enum ended_outcome { ENDED_DONE, ENDED_FAILED, ENDED_CANCELLED };

struct ended_filter {
    bool has_user;
    uint32_t uid;
    int64_t since_ms, until_ms; // ended at or after since_ms and before until_ms
    uint32_t outcomes;          // bits of enum ended_outcome; 0: any
    const char *name;           // pattern; NULL: any
};

struct ended_row {
    struct job *job;
    /* GPU time: allocated in all attempts, allocated in the measured one, and busy in that one. */
    int64_t held_ms, measured_ms, used_ms;
};

/* The position at which a page ends and the next begins. */
struct ended_place {
    int64_t ended_ms;
    uint64_t job;
};

/*
 * Fetches a page of at most `limit` jobs, newest first; elements of arrays are included, arrays are not.
 * `after` NULL: from the filter's `until_ms` on. A page may be short or empty although more follow: `next` is
 * NULL after the last one. The store owns rows, jobs and `next`; the filter is copied.
 */
void store_fetch_ended(struct store *store, const struct ended_filter *filter,
    const struct ended_place *after, size_t limit,
    void (*on_page)(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next),
    void *arg);

enum ended_by { ENDED_BY_USER, ENDED_BY_GROUP, ENDED_BY_DAY, ENDED_BY_NODE, ENDED_BYS };

struct ended_sum {
    int64_t number; // uid, gid, or days since 1970 in UTC
    char *node;     // ENDED_BY_NODE: the last node, "" for jobs that never ran
    uint64_t jobs;
    int64_t held_ms, measured_ms, used_ms;
    bool has_waits;                      // of jobs that started and have not been removed
    int64_t wait_median_ms, wait_p95_ms; // within 2 %
};

/*
 * Totals over all jobs that match the filter, ordered by key. Removed jobs are included by whole UTC days
 * touched by `since_ms` and `until_ms`, and only if the filter has neither `outcomes` nor `name`, which are
 * not kept for them. `is_cut`: there are more than ENDED_SUMS_MAX groups.
 */
void store_sum_ended(struct store *store, const struct ended_filter *filter, enum ended_by by,
    void (*on_sums)(void *arg, const struct ended_sum *sums, size_t count, bool is_cut), void *arg);

/*
 * Removes jobs that ended before `before_ms`, and of the others all but the newest `keep_max`, with their
 * events, specs and submit keys; a few in each transaction, which also adds their GPU times to the totals of
 * their days. Calls back when none is left. Jobs in `kept` (ids as in "3,17", or NULL) are kept regardless of
 * age, because waiting jobs depend on them.
 */
void store_retire(struct store *store, int64_t before_ms, uint64_t keep_max, const char *kept,
    void (*on_retired)(void *arg, uint64_t jobs), void *arg);
