/* SPDX-License-Identifier: MIT */
/* All statements run by the store's thread, prepared once. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"

/* The job that has the spec of this one: itself, or its array. */
#define STORE_SPEC_OF(job) "(SELECT iif(array_job = 0, id, array_job) FROM jobs WHERE id = " job ")"

enum store_statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_INSERT_JOB,
    SQL_UPDATE_JOB,
    SQL_INSERT_SPEC,
    SQL_INSERT_KEY,
    SQL_INSERT_EVENT,
    SQL_INSERT_ATTEMPT,
    SQL_START_ATTEMPT,
    SQL_END_ATTEMPT,
    SQL_INSERT_GPU,
    SQL_DELETE_GPUS,
    SQL_PUT_STATE,
    SQL_DELETE_STATE,
    SQL_DELETE_OLD_TOKENS,
    SQL_INSERT_TOKEN,
    SQL_FIND_TOKEN,
    SQL_SELECT_SPEC,
    SQL_SELECT_JOB,
    SQL_SELECT_IDS_UP,
    SQL_SELECT_IDS_DOWN,
    SQL_SELECT_EVENTS,
    SQL_SELECT_JOB_EVENTS,
    SQL_SELECT_STEP_EVENTS,
    SQL_INSERT_ENDED,
    SQL_SCAN_ENDED,
    SQL_SCAN_KEPT_DAYS,
    SQL_FIND_SURPLUS,
    SQL_FIND_OLD,
    SQL_RAISE_EVENT_FLOOR,
    SQL_KEEP_DAY,
    SQL_DELETE_ENDED,
    SQL_DELETE_KEYS,
    SQL_DELETE_JOB,
    SQL_DELETE_EVENTS,
    SQL_INSERT_JOIN_TOKEN,
    SQL_DELETE_OLD_JOIN_TOKENS,
    SQL_FIND_JOIN_TOKEN,
    SQL_USE_JOIN_TOKEN,
    SQL_FIND_NODE,
    SQL_PUT_NODE,
    SQL_DELETE_NODE,
    SQL_LIST_TOKENS,
    SQL_DELETE_TOKEN,
    STORE_STATEMENTS,
};

int store_statement_prepare(sqlite3 *db, sqlite3_stmt *statements[STORE_STATEMENTS], struct error *err);
void store_statement_finalize(sqlite3_stmt *statements[STORE_STATEMENTS]);
