/* SPDX-License-Identifier: MIT */
/* Values reach a statement only by binding; nothing here is made from text of a user. */
#include "store/store_statement.h"

#include "base/memory.h"
#include "store/store_row.h"
#include "store/store_sql.h"

static const char *const texts[STORE_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_INSERT_SPEC] = "INSERT INTO specs (job, spec) VALUES (?1, ?2)",
    /* A key older than its life may come again before the next start has removed its row. */
    [SQL_INSERT_KEY] = "INSERT OR REPLACE INTO submit_keys (key_hash, uid, job, spec_hash, created_ms)"
                       " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_INSERT_EVENT] = "INSERT INTO events (seq, job, attempt, type, wall_ms, event)"
                         " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_INSERT_ATTEMPT] = "INSERT INTO attempts (job, attempt, node, boot_id, token, allocated_ms,"
                           " started_ms, over_ms, last_event) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7)",
    [SQL_START_ATTEMPT] = "UPDATE attempts SET started_ms = ?3, last_event = ?4"
                          " WHERE job = ?1 AND attempt = ?2 AND over_ms = 0",
    [SQL_END_ATTEMPT] = "UPDATE attempts SET over_ms = ?3, last_event = ?4"
                        " WHERE job = ?1 AND attempt = ?2 AND over_ms = 0",
    [SQL_INSERT_GPU] = "INSERT INTO gpu_alloc (node, uuid, slot, job, attempt, gpu, memory, share, exclusive)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?3 = 0)",
    [SQL_DELETE_GPUS] = "DELETE FROM gpu_alloc WHERE job = ?1",
    [SQL_PUT_STATE] = "INSERT OR REPLACE INTO cluster_state (kind, key, value) VALUES (?1, ?2, ?3)",
    [SQL_DELETE_STATE] = "DELETE FROM cluster_state WHERE kind = ?1 AND key = ?2",
    [SQL_INSERT_TOKEN] = "INSERT INTO tokens (uid, gid, name, hash, created_ms, expires_ms)"
                         " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_FIND_TOKEN] = "SELECT id, uid, gid, name, created_ms, expires_ms FROM tokens WHERE hash = ?1"
                       " AND (expires_ms = 0 OR expires_ms > ?2)",
    [SQL_SELECT_SPEC] = "SELECT spec FROM specs WHERE job = " STORE_SPEC_OF("?1"),
    [SQL_SELECT_EVENTS] = "SELECT seq, event FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    [SQL_SELECT_JOB_EVENTS] =
        "SELECT seq, event FROM events WHERE seq > ?1 AND job = ?3 ORDER BY seq LIMIT ?2",
};

int store_statement_prepare(sqlite3 *db, sqlite3_stmt *statements[STORE_STATEMENTS], struct error *err)
{
    _cleanup_free_ char *insert = store_row_insert_sql();
    _cleanup_free_ char *update = store_row_update_sql();
    _cleanup_free_ char *select = store_row_select_sql("WHERE id = ?1");
    const char *const made[STORE_STATEMENTS] = {
        [SQL_INSERT_JOB] = insert,
        [SQL_UPDATE_JOB] = update,
        [SQL_SELECT_JOB] = select,
    };
    for (int i = 0; i < STORE_STATEMENTS; i++) {
        int r = store_sql_prepare(db, made[i] != NULL ? made[i] : texts[i], &statements[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

void store_statement_finalize(sqlite3_stmt *statements[STORE_STATEMENTS])
{
    for (int i = 0; i < STORE_STATEMENTS; i++)
        store_sql_finalizep(&statements[i]);
}
