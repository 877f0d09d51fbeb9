/* SPDX-License-Identifier: MIT */
/*
 * GET /tokens and DELETE /tokens/ID. What is listed is what a person needs to find the one that was lost: the
 * store has no secrets to show. A token is revoked by removing it. Its connections end in the same moment,
 * streams and terminals too: what they remember of it would be believed for LIMIT_TOKEN_CACHE_S otherwise.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "controller/core/core.h"
#include "controller/http/request.h"
#include "controller/api/routes.h"
#include "controller/api/tokens.h"
#include "store/store.h"
#include "wire/json_text.h"
#include "wire/limits.h"

static bool may_touch_others(const struct request *request)
{
    return role_permits(request->who.role, ACTION_TOKEN, false);
}

static json_t *write_token(const struct serve *serve, const struct store_token *token)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", json_integer((json_int_t)token->id));
    (void)json_object_set_new(object, "name", json_text_string(token->name));
    (void)json_object_set_new(object, "user", json_text_string(usernames_name(serve->names, token->uid)));
    (void)json_object_set_new(object, "created_at", json_text_time(token->created_ms));
    (void)json_object_set_new(object, "expires_at", json_text_time(token->expires_ms));
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
    request_ref(request);
    store_revoke_token(request->serve->controller->store, request->job,
        may_touch_others(request) ? STORE_ANY_USER : (int64_t)request->who.uid, on_revoked, request);
}
