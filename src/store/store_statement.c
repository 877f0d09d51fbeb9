/* SPDX-License-Identifier: MIT */
/* Values are only passed to statements by binding; no statement contains text of a user. */
#include "store/store_statement.h"

#include "base/memory.h"
#include "store/store_row.h"
#include "store/store_schema.h"
#include "store/store_sql.h"

#define TOKEN_COLUMNS "id, uid, gid, name, created_ms, expires_ms, scopes, max_gpu_ms"

static const char *const texts[STORE_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_INSERT_SPEC] = "INSERT INTO specs (job, spec) VALUES (?1, ?2)",
    /* An expired key may be submitted again before the next start has removed its row. */
    [SQL_INSERT_KEY] = "INSERT OR REPLACE INTO submit_keys (key_hash, uid, job, spec_hash, created_ms)"
                       " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_INSERT_EVENT] = "INSERT INTO events (seq, job, attempt, type, wall_ms, event)"
                         " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_INSERT_ATTEMPT] = "INSERT INTO attempts (job, attempt, node, token, allocated_ms, started_ms,"
                           " over_ms, last_event) VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6)",
    [SQL_START_ATTEMPT] = "UPDATE attempts SET started_ms = ?3, last_event = ?4"
                          " WHERE job = ?1 AND attempt = ?2 AND over_ms = 0",
    [SQL_END_ATTEMPT] = "UPDATE attempts SET over_ms = ?3, last_event = ?4"
                        " WHERE job = ?1 AND attempt = ?2 AND over_ms = 0",
    [SQL_INSERT_GPU] = "INSERT INTO gpu_alloc (node, uuid, slot, job, attempt, gpu, memory, share, exclusive)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?3 = 0)",
    [SQL_DELETE_GPUS] = "DELETE FROM gpu_alloc WHERE job = ?1",
    [SQL_PUT_STATE] = "INSERT OR REPLACE INTO cluster_state (kind, key, value) VALUES (?1, ?2, ?3)",
    [SQL_DELETE_STATE] = "DELETE FROM cluster_state WHERE kind = ?1 AND key = ?2",
    [SQL_DELETE_OLD_TOKENS] = "DELETE FROM tokens WHERE expires_ms > 0 AND expires_ms < ?1"
                              " AND (?2 < 0 OR uid = ?2)",
    [SQL_INSERT_TOKEN] = "INSERT INTO tokens (uid, gid, name, hash, created_ms, expires_ms, scopes,"
                         " max_gpu_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [SQL_FIND_TOKEN] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE hash = ?1"
                       " AND (expires_ms = 0 OR expires_ms > ?2)",
    [SQL_LIST_TOKENS] = "SELECT " TOKEN_COLUMNS " FROM tokens"
                        " WHERE (?1 < 0 OR uid = ?1) AND (expires_ms = 0 OR expires_ms > ?2)"
                        " ORDER BY id DESC LIMIT ?3",
    [SQL_DELETE_TOKEN] = "DELETE FROM tokens WHERE id = ?1 AND (?2 < 0 OR uid = ?2)",
    [SQL_SELECT_SPEC] = "SELECT spec FROM specs WHERE job = " STORE_SPEC_OF("?1"),
    [SQL_SELECT_IDS_UP] = "SELECT id, uid, name, array_job FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?2",
    [SQL_SELECT_IDS_DOWN] =
        "SELECT id, uid, name, array_job FROM jobs WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
    [SQL_SELECT_EVENTS] = "SELECT seq, event FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    [SQL_SELECT_JOB_EVENTS] = "SELECT seq, event FROM events WHERE seq > ?1 AND job = ?3 AND type NOT IN "
                              "(18, 19) ORDER BY seq LIMIT ?2",
    /* The steps themselves, and the ends of their attempts: returned, ended, requeued. */
    [SQL_SELECT_STEP_EVENTS] = "SELECT seq, event FROM events WHERE seq > ?1 AND job = ?3 AND type IN (4, 5, "
                               "10, 18, 19) ORDER BY seq LIMIT ?2",
    [SQL_INSERT_ENDED] =
        "INSERT OR REPLACE INTO ended (" STORE_ENDED_COLUMNS ") " STORE_ENDED_OF(STORE_GROUP, "j.id = ?1"),
    /* Newest first; ?1 and ?2 are the position to continue at, ?3 the oldest time included. */
    [SQL_SCAN_ENDED] = "SELECT " STORE_ENDED_COLUMNS " FROM ended WHERE (ended_ms, job) < (?1, ?2)"
                       " AND ended_ms >= ?3 ORDER BY ended_ms DESC, job DESC LIMIT ?4",
    [SQL_SCAN_KEPT_DAYS] = "SELECT day, uid, gid, node, jobs, held_ms, measured_ms, used_ms FROM kept_days"
                           " WHERE (day, uid, gid, node) > (?1, ?2, ?3, ?4) AND day <= ?5"
                           " ORDER BY day, uid, gid, node LIMIT ?6",
    [SQL_FIND_SURPLUS] = "SELECT ended_ms, job FROM ended ORDER BY ended_ms DESC, job DESC LIMIT 1 OFFSET ?1",
    /* An array is removed after its elements, which use its specification. */
    [SQL_FIND_OLD] =
        "SELECT job, ended_ms FROM ended AS e WHERE (ended_ms, job) <= (?1, ?2) AND NOT (is_array AND EXISTS"
        " (SELECT 1 FROM jobs AS m WHERE m.array_job = e.job AND m.array_job <> 0))"
        " AND job NOT IN (SELECT value FROM json_each(?4)) ORDER BY ended_ms, job LIMIT ?3",
    /* Event numbers are never reused, even if the latest events are removed. */
    [SQL_RAISE_EVENT_FLOOR] = "UPDATE meta SET value = max(value, (SELECT ifnull(max(seq), 0) FROM events))"
                              " WHERE name = 'event_floor'",
    [SQL_KEEP_DAY] =
        "INSERT INTO kept_days (day, uid, gid, node, jobs, held_ms, measured_ms, used_ms)"
        " SELECT ended_ms / 86400000, uid, gid, ifnull(node, ''), 1, held_ms, measured_ms, used_ms"
        " FROM ended WHERE job = ?1 AND ended_ms = ?2 AND NOT is_array ON CONFLICT DO UPDATE SET"
        " jobs = jobs + 1, held_ms = held_ms + excluded.held_ms,"
        " measured_ms = measured_ms + excluded.measured_ms, used_ms = used_ms + excluded.used_ms",
    [SQL_DELETE_ENDED] = "DELETE FROM ended WHERE job = ?1 AND ended_ms = ?2",
    [SQL_DELETE_KEYS] = "DELETE FROM submit_keys WHERE job = ?1",
    [SQL_DELETE_JOB] = "DELETE FROM jobs WHERE id = ?1",
    [SQL_DELETE_EVENTS] = "DELETE FROM events WHERE job = ?1",
    [SQL_INSERT_JOIN_TOKEN] =
        "INSERT INTO join_tokens (hash, uid, created_ms, expires_ms, node, is_replacing)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_DELETE_OLD_JOIN_TOKENS] = "DELETE FROM join_tokens WHERE expires_ms < ?1",
    [SQL_FIND_JOIN_TOKEN] =
        "SELECT hash, expires_ms, node, is_replacing, used_by FROM join_tokens WHERE id = ?1",
    [SQL_USE_JOIN_TOKEN] = "UPDATE join_tokens SET used_by = ?2 WHERE id = ?1",
    [SQL_FIND_NODE] = "SELECT name, key_hash FROM nodes WHERE name = ?1 OR key_hash = ?2",
    [SQL_PUT_NODE] = "INSERT OR REPLACE INTO nodes (name, key_hash, joined_ms) VALUES (?1, ?2, ?3)",
    [SQL_DELETE_NODE] = "DELETE FROM nodes WHERE name = ?1",
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
