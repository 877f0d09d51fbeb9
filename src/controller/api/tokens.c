/* SPDX-License-Identifier: MIT */
/*
 * Routes of tokens, and `Authorization: Bearer`. A token acts for its user only, and can be created only
 * where the kernel identifies the caller. A response of the store is cached on the connection for
 * LIMIT_TOKEN_CACHE_S, so a client with many requests does not cost as many reads. A list contains no
 * secrets: the store has none. A revoked token is removed, and its connections, streams and terminals are
 * closed at once.
 */
#include "controller/api/tokens.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/routes.h"
#include "controller/cluster/cluster.h"
#include "controller/core/core.h"
#include "controller/http/request.h"
#include "controller/http/users.h"
#include "controller/nodes/listener.h"
#include "controller/nodes/reach.h"
#include "store/store.h"
#include "wire/address.h"
#include "wire/json_record.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/requests.h"
#include "wire/tls/authority.h"
#include "wire/token.h"

#define DEFAULT_EXPIRES_S (30UL * 24 * 3600)
#define MILLI_HOUR_MS     3600U // a thousandth of an hour
#define HOUR_MS           3600000.0

static_assert(SCOPE_ALL == 15, "this is the default of the column in the store");

/* --- making --- */

struct making {
    char secret[TOKEN_SIZE];
    struct token_request body;
    unsigned scopes;
    int64_t expires_ms;
};

static void release_making(struct request *request)
{
    struct making *making = request->work;
    record_clear(&token_request_record, &making->body);
    OPENSSL_cleanse(making->secret, sizeof(making->secret));
    free(making);
}

/* "https://HOST:PORT#PIN"; NULL: this API is not reachable from other machines. */
static char *remote_api(const struct controller *controller, const char *host)
{
    const struct tls_authority *authority = NULL;
    char pin[TLS_PIN_TEXT_SIZE];
    if (controller->api_gate == NULL ||
        node_listener_authority(controller->node_listener, &authority, NULL) < 0)
        return NULL;
    _cleanup_free_ char *all = host == NULL && controller->cluster != NULL
                                   ? cluster_addresses(controller->cluster, CLUSTER_FOR_CLIENTS)
                                   : NULL;
    _cleanup_free_ char *where =
        all != NULL ? take_ptr(all) : reach_text(controller->options.listen, API_PORT, host);
    tls_pin_text(tls_authority_pin(authority), pin);
    return xasprintf("https://%s#%s", where, pin);
}

_Static_assert((int)LIMIT_USER_TOKENS == STORE_USER_TOKENS_MAX, "GET /limits tells what the store does");

int tokens_refusal(int result, const char *what, struct error *err)
{
    if (result == -EUSERS) {
        (void)error_set(err, result, "you have %d valid tokens and logins, the maximum", LIMIT_USER_TOKENS);
        return error_hint(err, "mgpu token list shows them, mgpu token revoke ends one");
    }
    if (result == -ENOSPC)
        return error_set(err, result, "%s was not stored: the disk of the store is full", what);
    return error_set(err, -EIO, "%s may or may not have been stored", what);
}

int tokens_charge(struct request *request, struct error *err)
{
    return users_request(request->serve->users, request->who.uid, clock_boot_ms(), LIMIT_TOKEN_REQUESTS, err);
}

static void on_added(void *arg, uint64_t id, int result)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        const struct making *making = request->work;
        struct error err = { 0 };
        if (result < 0) {
            (void)tokens_refusal(result, "the token", &err);
            request_reply_problem(request, &err);
        } else {
            json_t *body = json_object();
            (void)json_object_set_new(body, "id", json_integer((json_int_t)id));
            (void)json_object_set_new(body, "token", json_string(making->secret));
            (void)json_object_set_new(body, "name", json_text_string(making->body.name));
            (void)json_object_set_new(body, "expires_at", json_text_time(making->expires_ms));
            _cleanup_free_ char *api = remote_api(request->serve->controller, making->body.host);
            (void)json_object_set_new(body, "api", json_text_string(api));
            request_reply_json(request, 201, body);
        }
    }
    request_unref(request);
}

static int read_scopes(const struct strings *names, unsigned *ret, struct error *err)
{
    unsigned scopes = names->count == 0 ? SCOPE_ALL : 0;
    for (size_t i = 0; i < names->count; i++) {
        unsigned scope = scope_find(names->items[i]);
        if (scope == 0)
            return error_set(
                err, -EINVAL, "scope '%.40s' is not read, submit, control or manage", names->items[i]);
        scopes |= scope;
    }
    *ret = scopes;
    return 0;
}

/* A record reads 0 and [] as absent, so empty restrictions would be none. */
static int check_restrictions(const json_t *body, struct error *err)
{
    const json_t *hours = json_object_get(body, "max_gpu_hours"), *scopes = json_object_get(body, "scopes");
    if (json_is_number(hours) && json_number_value(hours) == 0)
        return error_set(err, -ERANGE, "max_gpu_hours is 0: omit it for a token without limit");
    if (json_is_array(scopes) && json_array_size(scopes) == 0)
        return error_set(err, -EINVAL, "scopes is empty: omit it for a token that may do everything");
    return 0;
}

static int read_making(struct request *request, struct making *making, struct error *err)
{
    _cleanup_json_ json_t *body = NULL;
    making->body.expires_s = DEFAULT_EXPIRES_S;
    if (!connection_is_unix(request->connection) || request->who.token.id != 0) {
        (void)error_set(err, -EPERM, "tokens can only be created on the unix socket, without a token");
        return error_hint(err, "run mgpu token create on the machine itself");
    }
    int r = request_parse_body(request, &body, err);
    if (r == 0)
        r = json_record_read(&token_request_record, body, &making->body, err);
    if (r == 0)
        r = check_restrictions(body, err);
    if (r < 0)
        return r;
    const char *name = making->body.name;
    if (name == NULL || name[0] == '\0')
        return error_set(err, -EINVAL, "name is missing: it identifies the token later");
    if (making->body.expires_s < 1 || making->body.expires_s > LIMIT_TOKEN_S)
        return error_set(
            err, -ERANGE, "expires_s: %" PRIu64 " is outside 1 to %d", making->body.expires_s, LIMIT_TOKEN_S);
    return read_scopes(&making->body.scopes, &making->scopes, err);
}

void handle_make_token(struct request *request)
{
    struct making *making = xcalloc(1, sizeof(*making));
    struct error err = { 0 };
    uint8_t hash[TOKEN_HASH_SIZE];
    request->work = making;
    request->release = release_making;
    int r = read_making(request, making, &err);
    if (r == 0)
        r = tokens_charge(request, &err);
    if (r == 0)
        r = token_make(making->secret, hash, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    int64_t now_ms = clock_wall_ms();
    making->expires_ms = now_ms + (int64_t)making->body.expires_s * 1000;
    struct store_token token = {
        .uid = request->who.uid,
        .gid = request->who.gid,
        .name = making->body.name,
        .created_ms = now_ms,
        .expires_ms = making->expires_ms,
        .scopes = making->scopes,
        .max_gpu_ms = (uint64_t)making->body.max_gpu_hours * MILLI_HOUR_MS,
    };
    request_ref(request);
    store_add_token(request->serve->controller->store, &token, hash, on_added, request);
}

/* --- using --- */

struct question {
    struct request *request;
    uint8_t hash[TOKEN_HASH_SIZE];
    void (*found)(struct request *request, bool is_found, void (*next)(struct request *request));
    void (*next)(struct request *request);
};

static void reply_bad_token(struct request *request, const char *why)
{
    struct error err = { 0 };
    (void)error_set(&err, -ENOKEY, "%s", why);
    (void)error_hint(&err, "create a new one with `mgpu token create`");
    request_reply_problem(request, &err);
}

static void on_token(void *arg, const struct store_token *token)
{
    struct question *question = arg;
    struct request *request = question->request;
    if (!request_is_over(request)) {
        if (token != NULL) {
            struct token_memory *memory = connection_token(request->connection);
            *memory = (struct token_memory){
                .is_valid = true,
                .id = token->id,
                .who = { .is_known = true,
                    .uid = token->uid,
                    .gid = token->gid,
                    .token = { token->id, token->scopes, token->max_gpu_ms, token->expires_ms } },
                .until_ms = clock_boot_ms() + LIMIT_TOKEN_CACHE_S * 1000L,
                .expires_ms = token->expires_ms,
            };
            memcpy(memory->hash, question->hash, sizeof(memory->hash));
            request->who = memory->who;
        }
        question->found(request, token != NULL, question->next);
    }
    request_unref(request);
    free(question);
}

void tokens_find(struct request *request, const uint8_t *hash,
    void (*found)(struct request *request, bool is_found, void (*next)(struct request *request)),
    void (*next)(struct request *request))
{
    const struct token_memory *memory = connection_token(request->connection);
    if (memory->is_valid && clock_boot_ms() < memory->until_ms && token_is_equal(memory->hash, hash)) {
        request->who = memory->who;
        found(request, true, next);
        return;
    }
    struct question *question = xcalloc(1, sizeof(*question));
    *question = (struct question){ .request = request, .found = found, .next = next };
    memcpy(question->hash, hash, sizeof(question->hash));
    request_ref(request);
    store_find_token(request->serve->controller->store, hash, clock_wall_ms(), on_token, question);
}

static void on_bearer(struct request *request, bool is_found, void (*next)(struct request *request))
{
    if (is_found)
        next(request);
    else
        reply_bad_token(request, "the token is unknown or has expired");
}

void tokens_identify(struct request *request, const char *header, void (*next)(struct request *request))
{
    uint8_t hash[TOKEN_HASH_SIZE];
    const char *token = token_of_header(header);
    if (token == NULL || !token_hash(token, hash)) {
        request->who = (struct identity){ 0 };
        reply_bad_token(request, "the Authorization header is not `Bearer mgpu_...`");
        return;
    }
    tokens_find(request, hash, on_bearer, next);
}

/* The caller's connection may be one of them: it gets its answer, and must then identify itself again. */
void tokens_end_connections(const struct request *request, uint64_t token)
{
    struct connection *next = NULL;
    for (struct connection *connection = request->serve->connections; connection != NULL; connection = next) {
        struct token_memory *memory = connection_token(connection);
        next = connection_next(connection);
        if (memory->id != token)
            continue;
        memory->is_valid = false;
        if (connection != request->connection)
            connection_close(connection);
    }
}

void tokens_end_expired(struct serve *serve)
{
    int64_t now_ms = clock_wall_ms();
    struct connection *next = NULL;
    for (struct connection *connection = serve->connections; connection != NULL; connection = next) {
        struct token_memory *memory = connection_token(connection);
        next = connection_next(connection);
        if (memory->is_valid && memory->expires_ms <= now_ms)
            connection_close(connection);
    }
}

/* --- listing and revoking --- */

static bool may_touch_others(const struct request *request)
{
    return role_permits(request->who.role, ACTION_TOKEN, false);
}

json_t *tokens_write_scopes(unsigned scopes)
{
    json_t *array = json_array();
    for (unsigned scope = 1; scope <= SCOPE_ALL; scope *= 2)
        if ((scopes & scope) != 0)
            (void)json_array_append_new(array, json_string(scope_name((enum scope)scope)));
    return array;
}

static json_t *write_hours(bool is_limited, uint64_t gpu_ms)
{
    return is_limited ? json_real((double)gpu_ms / HOUR_MS) : json_null();
}

static json_t *write_token(const struct serve *serve, const struct store_token *token)
{
    json_t *object = json_object();
    uint64_t used_ms = core_token_used_ms(serve->controller->core, clock_wall_ms(), token->id);
    (void)json_object_set_new(object, "id", json_integer((json_int_t)token->id));
    (void)json_object_set_new(object, "name", json_text_string(token->name));
    (void)json_object_set_new(object, "user", json_text_string(usernames_name(serve->names, token->uid)));
    (void)json_object_set_new(object, "created_at", json_text_time(token->created_ms));
    (void)json_object_set_new(object, "expires_at", json_text_time(token->expires_ms));
    (void)json_object_set_new(object, "scopes", tokens_write_scopes(token->scopes));
    (void)json_object_set_new(
        object, "max_gpu_hours", write_hours(token->max_gpu_ms != 0, token->max_gpu_ms));
    (void)json_object_set_new(object, "used_gpu_hours", write_hours(token->max_gpu_ms != 0, used_ms));
    return object;
}

static void on_tokens(void *arg, const struct store_token *tokens, size_t count)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        json_t *array = json_array(), *body = json_object();
        for (size_t i = 0; i < count; i++)
            (void)json_array_append_new(array, write_token(request->serve, &tokens[i]));
        (void)json_object_set_new(body, "tokens", array);
        request_reply_json(request, 200, body);
    }
    request_unref(request);
}

void handle_tokens(struct request *request)
{
    struct error err = { 0 };
    bool is_all = false;
    int r = query_get_flag(&request->query, "all", &is_all, &err);
    if (r == 0 && is_all && !may_touch_others(request)) {
        r = error_set(&err, -EPERM, "only administrators can list other users' tokens");
        (void)error_hint(&err, "%s", CORE_ROLES_HINT);
    }
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    request_ref(request);
    store_list_tokens(request->serve->controller->store, is_all ? STORE_ANY_USER : (int64_t)request->who.uid,
        clock_wall_ms(), LIMIT_LIST_TOKENS, on_tokens, request);
}

static void reply_revoked(struct request *request, uint64_t id, int result)
{
    struct error err = { 0 };
    if (result == -ENOENT) {
        (void)error_set(&err, result, "there is no token %" PRIu64 " of yours", id);
        (void)error_hint(&err, "list them with `mgpu token list`");
    } else if (result < 0) {
        (void)error_set(&err, result, "token %" PRIu64 " is still valid: the disk of the store is full", id);
    }
    if (result < 0)
        request_reply_problem(request, &err);
    else
        request_reply_json(request, 200, json_object());
}

static void on_revoked(void *arg, uint64_t id, int result)
{
    struct request *request = arg;
    if (result == 0)
        tokens_end_connections(request, id);
    if (!request_is_over(request))
        reply_revoked(request, id, result);
    request_unref(request);
}

void handle_revoke_token(struct request *request)
{
    struct error err = { 0 };
    if (tokens_charge(request, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    request_ref(request);
    store_revoke_token(request->serve->controller->store, request->job,
        may_touch_others(request) ? STORE_ANY_USER : (int64_t)request->who.uid, on_revoked, request);
}
