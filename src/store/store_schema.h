/* SPDX-License-Identifier: MIT */
/* The tables, and how an older database becomes the present one. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_APPLICATION_ID 0x6d677075 // "mgpu", in the file's header
#define STORE_KEY_LIFE_MS    (7LL * 24 * 3600 * 1000)

/* What meta's `mark` says of the file. */
enum store_mark {
    STORE_CLOSED,   // everything is in the database file
    STORE_IN_USE,   // the write-ahead log belongs to it; without the log the latest commits are missing
    STORE_SNAPSHOT, // a copy made while the store went on: ids and events after it were given out
};

/*
 * What the table `ended` says of jobs that are done, for a WHERE on `j`. A job holds its GPUs from each
 * allocation to the end of that attempt; how busy they were is known of its latest attempt alone, so
 * `measured_ms` is that attempt's part of `held_ms`, and `used_ms` the busy part of this. All three are GPU
 * time: two GPUs for a second are 2000. An array has a row to be found by, and holds nothing.
 */
#define STORE_ENDED_COLUMNS                                                                                  \
    "job, uid, gid, ended_ms, outcome, is_array, wait_ms, held_ms, measured_ms, used_ms, node, name"
#define STORE_HELD(which)                                                                                    \
    "(SELECT ifnull(sum(max(0, t.over_ms - t.allocated_ms) * granted_milli(e.event)), 0)"                    \
    " FROM attempts AS t JOIN events AS e ON e.job = t.job AND e.attempt = t.attempt AND e.type = 1"         \
    " WHERE t.job = j.id AND " which ")"
#define STORE_HELD_ALL  STORE_HELD("true")
#define STORE_HELD_LAST STORE_HELD("t.attempt = j.attempt")
#define STORE_ENDED_OF(where)                                                                                \
    "SELECT id, uid, gid, ended_ms, outcome, is_array, wait_ms, held / 1000, measured / 1000,"               \
    " measured / 1000 * ifnull(busy, 0) / 1000, node, name FROM (SELECT j.id, j.uid, j.gid, j.ended_ms,"     \
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

/* The highest version this program knows. */
int store_schema_version(void);

/* Makes the tables in an empty database that becomes the store `instance`. */
int store_schema_create(sqlite3 *db, const char *instance, struct error *err);

/* Runs the steps that the database has not seen yet, each in a transaction of its own. */
int store_schema_upgrade(sqlite3 *db, const struct schema_step *steps, size_t count, struct error *err);

/* -EUCLEAN: not a store of ours; -ENOTSUP: made by a newer mgpu. */
int store_schema_check(sqlite3 *db, const char *path, int *ret_version, struct error *err);
