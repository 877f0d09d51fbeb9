/* SPDX-License-Identifier: MIT */
/*
 * Submit keys: random text that identifies a client's repeated submit. Only a hash of it is kept, combined
 * with the user, so that the keys of two users never collide.
 */
#include <string.h>

#include "store/store_sqlite.h"

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ULL; // FNV-1a
    return hash;
}

uint64_t store_key_hash(uint32_t uid, const char *key)
{
    const uint8_t owner[4] = { (uint8_t)uid, (uint8_t)(uid >> 8), (uint8_t)(uid >> 16),
        (uint8_t)(uid >> 24) };
    uint64_t hash = mix(0xcbf29ce484222325ULL, owner, sizeof(owner));
    return mix(hash, (const uint8_t *)key, strlen(key));
}

int store_load_keys(struct store *store,
    void (*visit)(void *arg, uint64_t key_hash, uint64_t job, uint64_t spec_hash), void *arg,
    struct error *err)
{
    _cleanup_database_ sqlite3 *db = NULL;
    _cleanup_statement_ sqlite3_stmt *select = NULL;
    _cleanup_free_ char *path = store_path(store);
    int r = store_sql_open(path, STORE_READ, &db, err);
    if (r == 0)
        r = store_sql_prepare(
            db, "SELECT key_hash, job, spec_hash FROM submit_keys ORDER BY created_ms", &select, err);
    if (r < 0)
        return r;
    int rc;
    while ((rc = sqlite3_step(select)) == SQLITE_ROW)
        visit(arg, (uint64_t)sqlite3_column_int64(select, 0), (uint64_t)sqlite3_column_int64(select, 1),
            (uint64_t)sqlite3_column_int64(select, 2));
    return rc == SQLITE_DONE ? 0 : store_sql_fail(err, db, rc, "submit keys");
}
