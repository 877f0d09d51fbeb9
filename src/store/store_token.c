/* SPDX-License-Identifier: MIT */
/* Tokens of the API: the holder of the secret with this SHA-256 acts as this user. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_sqlite.h"
#include "store/store_write.h"

#define HASH_SIZE       32
#define EXPIRED_KEPT_MS (7 * 24 * 3600 * 1000L) // longer than any undetected error of the clock

struct add_token {
    struct store_request request;
    struct store_token token;
    uint8_t hash[HASH_SIZE];
    int result;
    void (*on_added)(void *arg, uint64_t id, int result);
    void *arg;
};

/* Removes those that expired before `before_ms`, of one user or of all (-1). */
static int delete_expired(struct store *store, int64_t uid, int64_t before_ms, struct error *err)
{
    sqlite3_stmt *old = store->statements[SQL_DELETE_OLD_TOKENS];
    (void)sqlite3_bind_int64(old, 1, before_ms);
    (void)sqlite3_bind_int64(old, 2, uid);
    return store_sql_finish(old, "tokens", err);
}

static int count_tokens(struct store *store, uint32_t uid, int64_t *ret, struct error *err)
{
    _cleanup_free_ char *sql = xasprintf("SELECT count(*) FROM tokens WHERE uid = %" PRIu32, uid);
    return store_sql_number(store->db, sql, ret, err);
}

/* After the removal of expired ones, a token beyond the user's maximum is refused. */
static int make_room(struct store *store, const struct store_token *token, struct error *err)
{
    int64_t count = 0;
    int r = delete_expired(store, -1, token->created_ms - EXPIRED_KEPT_MS, err);
    if (r == 0)
        r = count_tokens(store, token->uid, &count, err);
    if (r < 0 || count < STORE_USER_TOKENS_MAX)
        return r;
    r = delete_expired(store, token->uid, token->created_ms + 1, err);
    if (r == 0)
        r = count_tokens(store, token->uid, &count, err);
    return r == 0 && count >= STORE_USER_TOKENS_MAX
               ? error_set(err, -EUSERS, "user %" PRIu32 " has %d tokens", token->uid, STORE_USER_TOKENS_MAX)
               : r;
}

static int insert_token(struct store *store, void *arg, struct error *err)
{
    struct add_token *add = arg;
    int r = make_room(store, &add->token, err);
    if (r < 0)
        return r;
    sqlite3_stmt *statement = store->statements[SQL_INSERT_TOKEN];
    (void)sqlite3_bind_int64(statement, 1, add->token.uid);
    (void)sqlite3_bind_int64(statement, 2, add->token.gid);
    (void)sqlite3_bind_text(statement, 3, add->token.name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(statement, 4, add->hash, HASH_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 5, add->token.created_ms);
    (void)sqlite3_bind_int64(statement, 6, add->token.expires_ms);
    (void)sqlite3_bind_int64(statement, 7, add->token.scopes);
    (void)sqlite3_bind_int64(statement, 8, (int64_t)add->token.max_gpu_ms);
    r = store_sql_finish(statement, "tokens", err);
    if (r == 0)
        add->token.id = (uint64_t)sqlite3_last_insert_rowid(store->db);
    return r;
}

/* A token that cannot be added is refused: as with jobs, memory is never ahead of the disk. */
static int run_add_token(struct store *store, struct store_request *request, struct error *err)
{
    struct add_token *add = (struct add_token *)request;
    int r = store_write_transaction(store, insert_token, add, err);
    bool is_refused = r == -EEXIST || r == -ENOSPC || r == -EUSERS;
    if (is_refused)
        add->token.id = 0;
    add->result = r;
    return is_refused ? 0 : r;
}

static void answer_add_token(struct store *store, struct store_request *request)
{
    struct add_token *add = (struct add_token *)request;
    add->on_added(add->arg, add->token.id, add->result);
}

static void drop_add_token(struct store_request *request)
{
    const struct add_token *add = (const struct add_token *)request;
    add->on_added(add->arg, 0, -ECANCELED);
}

static void free_add_token(struct store_request *request)
{
    free(((struct add_token *)request)->token.name);
    free(request);
}

static const struct store_request_kind add_token_kind = {
    .run = run_add_token, .answer = answer_add_token, .drop = drop_add_token, .free = free_add_token
};

void store_add_token(struct store *store, const struct store_token *token, const uint8_t hash[HASH_SIZE],
    void (*on_added)(void *arg, uint64_t id, int result), void *arg)
{
    struct add_token *add = xcalloc(1, sizeof(*add));
    *add = (struct add_token){
        .request.kind = &add_token_kind, .token = *token, .on_added = on_added, .arg = arg
    };
    add->token.name = xstrdup(token->name);
    memcpy(add->hash, hash, HASH_SIZE);
    store_thread_push(store, &add->request);
}

/* Of a statement that selects all columns but the hash. */
static struct store_token read_token(sqlite3_stmt *statement)
{
    return (struct store_token){
        .id = (uint64_t)sqlite3_column_int64(statement, 0),
        .uid = (uint32_t)sqlite3_column_int64(statement, 1),
        .gid = (uint32_t)sqlite3_column_int64(statement, 2),
        .name = store_sql_text(statement, 3),
        .created_ms = sqlite3_column_int64(statement, 4),
        .expires_ms = sqlite3_column_int64(statement, 5),
        .scopes = (uint32_t)sqlite3_column_int64(statement, 6),
        .max_gpu_ms = (uint64_t)sqlite3_column_int64(statement, 7),
    };
}

struct find_token {
    struct store_request request;
    uint8_t hash[HASH_SIZE];
    int64_t now_ms;
    bool is_found;
    struct store_token token;
    void (*on_token)(void *arg, const struct store_token *token);
    void *arg;
};

static int run_find_token(struct store *store, struct store_request *request, struct error *err)
{
    struct find_token *find = (struct find_token *)request;
    sqlite3_stmt *statement = store->statements[SQL_FIND_TOKEN];
    (void)sqlite3_bind_blob(statement, 1, find->hash, HASH_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, find->now_ms);
    int rc = sqlite3_step(statement);
    find->is_found = rc == SQLITE_ROW;
    if (find->is_found)
        find->token = read_token(statement);
    int r = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "tokens");
    (void)sqlite3_reset(statement);
    return r;
}

static void answer_find_token(struct store *store, struct store_request *request)
{
    struct find_token *find = (struct find_token *)request;
    find->on_token(find->arg, find->is_found ? &find->token : NULL);
}

static void drop_find_token(struct store_request *request)
{
    const struct find_token *find = (const struct find_token *)request;
    find->on_token(find->arg, NULL);
}

static void free_find_token(struct store_request *request)
{
    free(((struct find_token *)request)->token.name);
    free(request);
}

static const struct store_request_kind find_token_kind = {
    .run = run_find_token, .answer = answer_find_token, .drop = drop_find_token, .free = free_find_token
};

void store_find_token(struct store *store, const uint8_t hash[HASH_SIZE], int64_t now_ms,
    void (*on_token)(void *arg, const struct store_token *token), void *arg)
{
    struct find_token *find = xcalloc(1, sizeof(*find));
    *find = (struct find_token){
        .request.kind = &find_token_kind, .now_ms = now_ms, .on_token = on_token, .arg = arg
    };
    memcpy(find->hash, hash, HASH_SIZE);
    store_thread_push(store, &find->request);
}

/* --- listing --- */

struct list_tokens {
    struct store_request request;
    int64_t uid, now_ms;
    size_t limit, count;
    struct store_token *tokens;
    void (*on_tokens)(void *arg, const struct store_token *tokens, size_t count);
    void *arg;
};

static int run_list_tokens(struct store *store, struct store_request *request, struct error *err)
{
    struct list_tokens *list = (struct list_tokens *)request;
    sqlite3_stmt *statement = store->statements[SQL_LIST_TOKENS];
    int rc;
    (void)sqlite3_bind_int64(statement, 1, list->uid);
    (void)sqlite3_bind_int64(statement, 2, list->now_ms);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)list->limit);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
        list->tokens[list->count++] = read_token(statement);
    int r = rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "tokens");
    (void)sqlite3_reset(statement);
    return r;
}

static void answer_list_tokens(struct store *store, struct store_request *request)
{
    struct list_tokens *list = (struct list_tokens *)request;
    list->on_tokens(list->arg, list->tokens, list->count);
}

static void free_list_tokens(struct store_request *request)
{
    struct list_tokens *list = (struct list_tokens *)request;
    for (size_t i = 0; i < list->count; i++)
        free(list->tokens[i].name);
    free(list->tokens);
    free(list);
}

static const struct store_request_kind list_tokens_kind = {
    .run = run_list_tokens, .answer = answer_list_tokens, .free = free_list_tokens
};

void store_list_tokens(struct store *store, int64_t uid, int64_t now_ms, size_t limit,
    void (*on_tokens)(void *arg, const struct store_token *tokens, size_t count), void *arg)
{
    struct list_tokens *list = xcalloc(1, sizeof(*list));
    *list = (struct list_tokens){
        .request.kind = &list_tokens_kind,
        .uid = uid,
        .now_ms = now_ms,
        .limit = limit,
        .tokens = xcalloc(limit, sizeof(*list->tokens)),
        .on_tokens = on_tokens,
        .arg = arg,
    };
    store_thread_push(store, &list->request);
}

/* --- revoking --- */

struct revoke_token {
    struct store_request request;
    uint64_t id;
    int64_t uid;
    int result;
    void (*on_revoked)(void *arg, uint64_t id, int result);
    void *arg;
};

static int delete_token(struct store *store, void *arg, struct error *err)
{
    struct revoke_token *revoke = arg;
    sqlite3_stmt *statement = store->statements[SQL_DELETE_TOKEN];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)revoke->id);
    (void)sqlite3_bind_int64(statement, 2, revoke->uid);
    int r = store_sql_finish(statement, "tokens", err);
    if (r == 0)
        revoke->result = sqlite3_changes(store->db) > 0 ? 0 : -ENOENT;
    return r;
}

static int run_revoke_token(struct store *store, struct store_request *request, struct error *err)
{
    struct revoke_token *revoke = (struct revoke_token *)request;
    int r = store_write_transaction(store, delete_token, revoke, err);
    if (r == -ENOSPC)
        revoke->result = r;
    return r == -ENOSPC ? 0 : r;
}

static void answer_revoke_token(struct store *store, struct store_request *request)
{
    struct revoke_token *revoke = (struct revoke_token *)request;
    revoke->on_revoked(revoke->arg, revoke->id, revoke->result);
}

static const struct store_request_kind revoke_token_kind = { .run = run_revoke_token,
    .answer = answer_revoke_token };

void store_revoke_token(struct store *store, uint64_t id, int64_t uid,
    void (*on_revoked)(void *arg, uint64_t id, int result), void *arg)
{
    struct revoke_token *revoke = xcalloc(1, sizeof(*revoke));
    *revoke = (struct revoke_token){
        .request.kind = &revoke_token_kind, .id = id, .uid = uid, .on_revoked = on_revoked, .arg = arg
    };
    store_thread_push(store, &revoke->request);
}
