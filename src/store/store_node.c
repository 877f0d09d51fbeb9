/* SPDX-License-Identifier: MIT */
#include "store/store_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "store/store_sqlite.h"
#include "store/store_write.h"

#define TOKEN_KEPT_MS (7LL * 24 * 3600 * 1000) // after its end, to distinguish it from one that never existed

static bool is_refused(int r)
{
    return r == -EEXIST || r == -ENOSPC;
}

/* --- making tokens --- */

struct add {
    struct store_request request;
    struct store_join_token token;
    uint8_t hash[STORE_HASH_SIZE];
    uint64_t id;
    void (*on_added)(void *arg, uint64_t id);
    void *arg;
};

static int insert_token(struct store *store, void *arg, struct error *err)
{
    struct add *add = arg;
    sqlite3_stmt *old = store->statements[SQL_DELETE_OLD_JOIN_TOKENS];
    sqlite3_stmt *insert = store->statements[SQL_INSERT_JOIN_TOKEN];
    (void)sqlite3_bind_int64(old, 1, add->token.created_ms - TOKEN_KEPT_MS);
    int r = store_sql_finish(old, "join tokens", err);
    (void)sqlite3_bind_blob(insert, 1, add->hash, STORE_HASH_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(insert, 2, add->token.uid);
    (void)sqlite3_bind_int64(insert, 3, add->token.created_ms);
    (void)sqlite3_bind_int64(insert, 4, add->token.expires_ms);
    (void)sqlite3_bind_text(insert, 5, add->token.node, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(insert, 6, add->token.is_replacing);
    if (r == 0)
        r = store_sql_finish(insert, "join tokens", err);
    if (r == 0)
        add->id = (uint64_t)sqlite3_last_insert_rowid(store->db);
    return r;
}

static int run_add(struct store *store, struct store_request *request, struct error *err)
{
    struct add *add = (struct add *)request;
    int r = store_write_transaction(store, insert_token, add, err);
    if (is_refused(r))
        add->id = 0;
    return is_refused(r) ? 0 : r;
}

static void answer_add(struct store *store, struct store_request *request)
{
    struct add *add = (struct add *)request;
    add->on_added(add->arg, add->id);
}

static void drop_add(struct store_request *request)
{
    const struct add *add = (const struct add *)request;
    add->on_added(add->arg, 0);
}

static void free_add(struct store_request *request)
{
    free(((struct add *)request)->token.node);
    free(request);
}

static const struct store_request_kind add_kind = {
    .run = run_add, .answer = answer_add, .drop = drop_add, .free = free_add
};

void store_add_join_token(struct store *store, const struct store_join_token *token,
    const uint8_t hash[STORE_HASH_SIZE], void (*on_added)(void *arg, uint64_t id), void *arg)
{
    struct add *add = xcalloc(1, sizeof(*add));
    *add = (struct add){ .request.kind = &add_kind, .token = *token, .on_added = on_added, .arg = arg };
    add->token.node = xstrdup(token->node);
    memcpy(add->hash, hash, STORE_HASH_SIZE);
    store_thread_push(store, &add->request);
}

/* --- joining --- */

struct join {
    struct store_request request;
    struct store_join asked;
    enum store_join_result result;
    void (*on_joined)(void *arg, enum store_join_result result);
    void *arg;
};

/* Compares in constant time. */
static bool is_hash(sqlite3_stmt *row, int column, const uint8_t hash[STORE_HASH_SIZE])
{
    const volatile uint8_t *kept = sqlite3_column_blob(row, column);
    uint8_t difference = 0;
    if (sqlite3_column_bytes(row, column) != STORE_HASH_SIZE)
        return false;
    for (size_t i = 0; i < STORE_HASH_SIZE; i++)
        difference |= kept[i] ^ hash[i];
    return difference == 0;
}

static bool is_text(sqlite3_stmt *row, int column, const char *text)
{
    return text_equal((const char *)sqlite3_column_text(row, column), text);
}

/* The row of the token, or none. Callers without its secret get no other information about it. */
static enum store_join_result judge_token(
    sqlite3_stmt *row, const struct store_join *asked, bool *ret_is_replacing)
{
    if (!is_hash(row, 0, asked->hash))
        return STORE_JOIN_UNKNOWN;
    if (sqlite3_column_type(row, 4) != SQLITE_NULL && !is_hash(row, 4, asked->key_hash))
        return STORE_JOIN_USED;
    if (sqlite3_column_type(row, 4) == SQLITE_NULL && sqlite3_column_int64(row, 1) <= asked->now_ms)
        return STORE_JOIN_EXPIRED;
    bool is_for_one = sqlite3_column_type(row, 2) != SQLITE_NULL;
    if (asked->node != NULL && is_for_one && !is_text(row, 2, asked->node))
        return STORE_JOIN_NOT_FOR_IT;
    *ret_is_replacing = sqlite3_column_int(row, 3) != 0;
    return STORE_JOIN_DONE;
}

static enum store_join_result judge_node(sqlite3_stmt *row, const struct store_join *asked, bool is_replacing)
{
    bool is_name = is_text(row, 0, asked->node), is_key = is_hash(row, 1, asked->key_hash);
    if (is_key && !is_name)
        return STORE_JOIN_KEY_TAKEN;
    return is_name && !is_key && !is_replacing ? STORE_JOIN_NAME_TAKEN : STORE_JOIN_DONE;
}

static int judge(struct store *store, struct join *join, struct error *err)
{
    bool is_replacing = false;
    sqlite3_stmt *token = store->statements[SQL_FIND_JOIN_TOKEN], *node = store->statements[SQL_FIND_NODE];
    (void)sqlite3_bind_int64(token, 1, (int64_t)join->asked.token);
    int rc = sqlite3_step(token);
    join->result = rc == SQLITE_ROW ? judge_token(token, &join->asked, &is_replacing) : STORE_JOIN_UNKNOWN;
    (void)sqlite3_reset(token);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_sql_fail(err, store->db, rc, "join tokens");
    if (join->asked.node == NULL)
        return 0;
    (void)sqlite3_bind_text(node, 1, join->asked.node, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(node, 2, join->asked.key_hash, STORE_HASH_SIZE, SQLITE_STATIC);
    while ((rc = sqlite3_step(node)) == SQLITE_ROW)
        if (join->result == STORE_JOIN_DONE)
            join->result = judge_node(node, &join->asked, is_replacing);
    (void)sqlite3_reset(node);
    return rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "nodes");
}

static int join_node(struct store *store, void *arg, struct error *err)
{
    struct join *join = arg;
    int r = judge(store, join, err);
    if (r < 0 || join->result != STORE_JOIN_DONE || join->asked.node == NULL)
        return r;
    sqlite3_stmt *use = store->statements[SQL_USE_JOIN_TOKEN], *put = store->statements[SQL_PUT_NODE];
    (void)sqlite3_bind_int64(use, 1, (int64_t)join->asked.token);
    (void)sqlite3_bind_blob(use, 2, join->asked.key_hash, STORE_HASH_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_text(put, 1, join->asked.node, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(put, 2, join->asked.key_hash, STORE_HASH_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(put, 3, join->asked.now_ms);
    r = store_sql_finish(use, "join tokens", err);
    return r < 0 ? r : store_sql_finish(put, "nodes", err);
}

static int run_join(struct store *store, struct store_request *request, struct error *err)
{
    struct join *join = (struct join *)request;
    int r = store_write_transaction(store, join_node, join, err);
    if (is_refused(r))
        join->result = STORE_JOIN_FULL;
    return is_refused(r) ? 0 : r;
}

static void answer_join(struct store *store, struct store_request *request)
{
    struct join *join = (struct join *)request;
    join->on_joined(join->arg, join->result);
}

static void free_join(struct store_request *request)
{
    free(((struct join *)request)->asked.node);
    free(request);
}

static const struct store_request_kind join_kind = {
    .run = run_join, .answer = answer_join, .free = free_join
};

void store_join_node(struct store *store, const struct store_join *asked,
    void (*on_joined)(void *arg, enum store_join_result result), void *arg)
{
    struct join *join = xcalloc(1, sizeof(*join));
    *join = (struct join){ .request.kind = &join_kind, .asked = *asked, .on_joined = on_joined, .arg = arg };
    join->asked.node = xstrdup(asked->node);
    store_thread_push(store, &join->request);
}

/* --- forgetting --- */

struct forget {
    struct store_request request;
    char *name;
    bool is_done;
    void (*on_forgotten)(void *arg, bool is_done);
    void *arg;
};

static int delete_node(struct store *store, void *arg, struct error *err)
{
    const struct forget *forget = arg;
    sqlite3_stmt *statement = store->statements[SQL_DELETE_NODE];
    (void)sqlite3_bind_text(statement, 1, forget->name, -1, SQLITE_STATIC);
    return store_sql_finish(statement, "nodes", err);
}

static int run_forget(struct store *store, struct store_request *request, struct error *err)
{
    struct forget *forget = (struct forget *)request;
    int r = store_write_transaction(store, delete_node, forget, err);
    forget->is_done = r == 0;
    return is_refused(r) ? 0 : r;
}

static void answer_forget(struct store *store, struct store_request *request)
{
    struct forget *forget = (struct forget *)request;
    forget->on_forgotten(forget->arg, forget->is_done);
}

static void drop_forget(struct store_request *request)
{
    const struct forget *forget = (const struct forget *)request;
    forget->on_forgotten(forget->arg, false);
}

static void free_forget(struct store_request *request)
{
    free(((struct forget *)request)->name);
    free(request);
}

static const struct store_request_kind forget_kind = {
    .run = run_forget, .answer = answer_forget, .drop = drop_forget, .free = free_forget
};

void store_forget_node(
    struct store *store, const char *name, void (*on_forgotten)(void *arg, bool is_done), void *arg)
{
    struct forget *forget = xcalloc(1, sizeof(*forget));
    *forget = (struct forget){
        .request.kind = &forget_kind, .name = xstrdup(name), .on_forgotten = on_forgotten, .arg = arg
    };
    store_thread_push(store, &forget->request);
}

/* --- loading --- */

int store_load_nodes(struct store *store, void (*visit)(void *arg, const struct store_node *node), void *arg,
    int64_t *ret_until_ms, struct error *err)
{
    _cleanup_database_ sqlite3 *db = NULL;
    _cleanup_statement_ sqlite3_stmt *select = NULL;
    _cleanup_free_ char *path = store_path(store);
    int rc, r = store_sql_open(path, STORE_READ, &db, err);
    if (r == 0)
        r = store_sql_prepare(db, "SELECT name, key_hash, joined_ms FROM nodes ORDER BY name", &select, err);
    if (r < 0)
        return r;
    while ((rc = sqlite3_step(select)) == SQLITE_ROW) {
        _cleanup_free_ char *name = store_sql_text(select, 0);
        struct store_node node = { .name = name, .joined_ms = sqlite3_column_int64(select, 2) };
        memcpy(node.key_hash, sqlite3_column_blob(select, 1), STORE_HASH_SIZE); // a CHECK gives its length
        visit(arg, &node);
    }
    if (rc != SQLITE_DONE)
        return store_sql_fail(err, db, rc, "nodes");
    return store_sql_number(
        db, "SELECT ifnull(max(expires_ms), 0) FROM join_tokens WHERE used_by IS NULL", ret_until_ms, err);
}
