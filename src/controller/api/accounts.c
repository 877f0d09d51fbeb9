/* SPDX-License-Identifier: MIT */
/* GET /users: running jobs, usage and limits of users. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "controller/api/accounts.h"
#include "controller/http/request.h"
#include "controller/api/routes.h"
#include "wire/directory.h"
#include "wire/json_text.h"

static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *write_limits(const struct account_limits *limits)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "running", limits->jobs > 0 ? json_integer(limits->jobs) : json_null());
    (void)json_object_set_new(object, "gpus", number_or_null(limits->gpu_milli / 1000.0));
    (void)json_object_set_new(object, "gpu_seconds", number_or_null(limits->gpu_seconds));
    return object;
}

json_t *accounts_group_name(uint32_t gid)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    char number[16];
    if (directory_find(DIRECTORY_GROUP, gid, NULL, &entry) == 0)
        return json_text_string(entry.name);
    (void)snprintf(number, sizeof(number), "%" PRIu32, gid);
    return json_string(number);
}

static json_t *write_account(
    struct serve *serve, const struct fairshare *fairshare, const struct account *account, double shares)
{
    int64_t now_ms = clock_wall_ms();
    json_t *object = json_object();
    bool is_group = account->is_group;
    (void)json_object_set_new(
        object, "user", is_group ? json_null() : json_text_string(usernames_name(serve->names, account->id)));
    (void)json_object_set_new(object, "uid", is_group ? json_null() : json_integer(account->id));
    (void)json_object_set_new(object, "group", is_group ? accounts_group_name(account->id) : json_null());
    (void)json_object_set_new(object, "running", json_integer(account->running));
    (void)json_object_set_new(object, "queued", json_integer(account->waiting));
    (void)json_object_set_new(object, "gpus", json_real(account->gpu_milli / 1000.0));
    (void)json_object_set_new(
        object, "gpu_seconds", json_real(round(fairshare_usage(fairshare, account, now_ms) * 1000) / 1000));
    (void)json_object_set_new(object, "share", json_real(shares > 0 ? account->shares / shares : 0));
    (void)json_object_set_new(
        object, "factor", json_real(1 / (1 + exp2(fairshare_factor(fairshare, account, now_ms)))));
    (void)json_object_set_new(object, "limits", write_limits(&account->limits));
    return object;
}

void handle_users(struct request *request)
{
    const struct fairshare *fairshare = sched_fairshare(core_sched(request->serve->controller->core));
    double shares[2] = { 0, 0 };
    json_t *array = json_array(), *body = json_object();
    for (const struct account *account = fairshare->first; account != NULL; account = account->next)
        shares[account->is_group] += account->shares;
    for (int is_group = 0; is_group <= 1; is_group++)
        for (const struct account *account = fairshare->first; account != NULL; account = account->next)
            if (account->is_group == (is_group != 0))
                (void)json_array_append_new(
                    array, write_account(request->serve, fairshare, account, shares[is_group]));
    (void)json_object_set_new(body, "users", array);
    request_hold_json(request, 200, body);
}
