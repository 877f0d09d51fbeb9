/* SPDX-License-Identifier: MIT */
/* Iterates over the table `ended`, newest first, in steps. */
#pragma once

#include "store/store_ended.h"

struct ended_scan {
    struct ended_filter filter; // its `name` is a copy
    struct ended_place after;
    bool is_over;
};

/* A row that matches the filter; texts are valid only during the visit. */
struct ended_found {
    uint64_t job;
    uint32_t uid, gid;
    int64_t ended_ms;
    bool has_wait; // it has started
    int64_t wait_ms, held_ms, measured_ms, used_ms;
    const char *node; // NULL: none
};

/* Copies the filter. */
void ended_scan_init(
    struct ended_scan *scan, const struct ended_filter *filter, const struct ended_place *after);
void ended_scan_clear(struct ended_scan *scan);

/*
 * On the store's thread: reads at most `rows` rows and continues there the next time. If a visit returns 1,
 * the step ends after this row; a negative errno ends the scan.
 */
int ended_scan_run(struct ended_scan *scan, struct store *store, size_t rows,
    int (*visit)(void *arg, struct store *store, const struct ended_found *found, struct error *err),
    void *arg, struct error *err);
