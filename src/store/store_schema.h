/* SPDX-License-Identifier: MIT */
/* The schema, and its upgrades from older versions. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_APPLICATION_ID 0x6d677075 // "mgpu", in the file header
#define STORE_KEY_LIFE_MS    (7LL * 24 * 3600 * 1000)

/* Values of meta's `mark`, the state of the file. */
enum store_mark {
    STORE_CLOSED,   // the database file is complete
    STORE_IN_USE,   // the write-ahead log is needed; without it the latest commits are missing
    STORE_SNAPSHOT, // a copy of a store that continued: later ids and events exist
};

/*
 * The columns of `ended` for done jobs, for a WHERE on `j`. A job holds its GPUs from each allocation (1), or
 * from when it inherits them (26), to the end of that attempt (5, 10), except while it was parked.
 * Utilization is known only for its latest attempt, so `measured_ms` is that attempt's part of `held_ms`, and
 * `used_ms` the busy part of it. All three are GPU time: two GPUs for a second are 2000. An array has a row,
 * so that it can be found, with all times 0.
 */
#define STORE_ENDED_COLUMNS                                                                                  \
    "job, uid, gid, ended_ms, outcome, is_array, wait_ms, held_ms, measured_ms, used_ms, node, name"
#define STORE_PARKED                                                                                         \
    "ifnull((SELECT event_parked_ms(p.event) FROM events AS p WHERE p.job = t.job AND p.attempt = t.attempt" \
    " AND p.type IN (5, 10)), 0)"
#define STORE_HELD(which)                                                                                    \
    "(SELECT ifnull(sum(max(0, t.over_ms - max(t.allocated_ms, e.wall_ms) - " STORE_PARKED                   \
    ") * granted_milli(e.event)), 0)"                                                                        \
    " FROM attempts AS t JOIN events AS e ON e.job = t.job AND e.attempt = t.attempt AND e.type IN (1, 26)"  \
    " WHERE t.job = j.id AND " which ")"
#define STORE_HELD_ALL  STORE_HELD("true")
#define STORE_HELD_LAST STORE_HELD("t.attempt = j.attempt")
#define STORE_GROUP     "iif(j.account = 0, j.gid, j.account - 1)" // job_group()
#define STORE_ENDED_OF(group, where)                                                                         \
    "SELECT id, uid, gid, ended_ms, outcome, is_array, wait_ms, held / 1000, measured / 1000,"               \
    " measured / 1000 * ifnull(busy, 0) / 1000, node, name FROM (SELECT j.id, j.uid, " group                 \
    " AS gid, j.ended_ms,"                                                                                   \
    "  CASE WHEN j.\"end\" = 3 THEN 2 WHEN j.\"end\" = 14 OR (j.\"end\" = 1 AND j.exit_code = 0) THEN 0"     \
    "   ELSE 1 END AS outcome, j.array_left IS NOT NULL AS is_array,"                                        \
    "  iif(j.started_ms = 0, NULL, max(0, j.started_ms - j.submitted_ms)) AS wait_ms,"                       \
    "  " STORE_HELD_ALL " AS held, iif(usage_milli(j.usage) IS NULL, 0, " STORE_HELD_LAST ") AS measured,"   \
    "  usage_milli(j.usage) AS busy, j.node, j.name FROM jobs AS j WHERE j.state = 5 AND " where ")"

struct schema_step {
    int version; // after the step
    const char *sql;
};

extern const struct schema_step store_schema_steps[];
extern const size_t store_schema_n_steps;

/* The highest version that this program supports. */
int store_schema_version(void);

/* Creates the tables in an empty database, which becomes the store `instance`. */
int store_schema_create(sqlite3 *db, const char *instance, struct error *err);

/* Runs the missing upgrade steps, each in its own transaction. */
int store_schema_upgrade(sqlite3 *db, const struct schema_step *steps, size_t count, struct error *err);

/* -EUCLEAN: not an mgpu store; -ENOTSUP: created by a newer mgpu. */
int store_schema_check(sqlite3 *db, const char *path, int *ret_version, struct error *err);
