/* SPDX-License-Identifier: MIT */
/* A walk through the table `ended`, the newest first, in pieces. */
#pragma once

#include "store/store_ended.h"

struct ended_scan {
    struct ended_filter filter; // with a name of its own
    struct ended_place after;
    bool is_over;
};

/* A row that passes the filter; texts are good during the visit only. */
struct ended_found {
    uint64_t job;
    uint32_t uid, gid;
    int64_t ended_ms;
    bool has_wait; // it was started
    int64_t wait_ms, held_ms, measured_ms, used_ms;
    const char *node; // NULL: it never had one
};

/* Copies the filter. */
void ended_scan_init(
    struct ended_scan *scan, const struct ended_filter *filter, const struct ended_place *after);
void ended_scan_clear(struct ended_scan *scan);

/*
 * On the store's thread: looks at `rows` rows at most and goes on from there the next time. A visit that
 * returns 1 ends this piece after its row; a negative errno ends it all.
 */
int ended_scan_run(struct ended_scan *scan, struct store *store, size_t rows,
    int (*visit)(void *arg, struct store *store, const struct ended_found *found, struct error *err),
    void *arg, struct error *err);
