/* SPDX-License-Identifier: MIT */
/* GET /users: running jobs, usage and limits of users. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "controller/api/accounts.h"
#include "controller/api/routes.h"
#include "controller/core/settings.h"
#include "controller/http/request.h"
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

/* NULL: it has no department, or is one itself. */
static const char *department_name(const struct core *core, const struct account *account)
{
    while (account != NULL && account->kind != ACCOUNT_DEPARTMENT)
        account = account->parent;
    return account != NULL ? core_department_name(core, account->id) : NULL;
}

/* A user's group is known from its first job on. */
static json_t *write_part(const struct fairshare *fairshare, const struct account *account)
{
    bool is_known = account->kind != ACCOUNT_USER || account->parent != NULL;
    return is_known ? json_real(fairshare_part(fairshare, account)) : json_null();
}

static json_t *write_account(
    struct serve *serve, const struct fairshare *fairshare, const struct account *account)
{
    int64_t now_ms = clock_wall_ms();
    json_t *object = json_object();
    enum account_kind kind = account->kind;
    double charged = fairshare_charged(fairshare, account, now_ms);
    (void)json_object_set_new(object, "user",
        kind == ACCOUNT_USER ? json_text_string(usernames_name(serve->names, account->id)) : json_null());
    (void)json_object_set_new(object, "uid", kind == ACCOUNT_USER ? json_integer(account->id) : json_null());
    (void)json_object_set_new(
        object, "group", kind == ACCOUNT_GROUP ? accounts_group_name(account->id) : json_null());
    (void)json_object_set_new(
        object, "department", json_text_string(department_name(serve->controller->core, account)));
    (void)json_object_set_new(object, "running", json_integer(account->running));
    (void)json_object_set_new(object, "queued", json_integer(account->waiting));
    (void)json_object_set_new(object, "gpus", json_real(account->gpu_milli / 1000.0));
    (void)json_object_set_new(
        object, "gpu_seconds", json_real(round(fairshare_usage(fairshare, account, now_ms) * 1000) / 1000));
    (void)json_object_set_new(object, "charged_seconds", json_real(round(charged * 1000) / 1000));
    (void)json_object_set_new(object, "share", write_part(fairshare, account));
    (void)json_object_set_new(
        object, "factor", json_real(1 / (1 + exp2(fairshare_path_factor(fairshare, account, now_ms)))));
    (void)json_object_set_new(object, "limits", write_limits(&account->limits));
    return object;
}

void handle_users(struct request *request)
{
    const struct fairshare *fairshare = sched_fairshare(core_sched(request->serve->controller->core));
    json_t *array = json_array(), *body = json_object();
    for (unsigned kind = ACCOUNT_USER; kind <= ACCOUNT_DEPARTMENT; kind++)
        for (const struct account *account = fairshare->first; account != NULL; account = account->next)
            if (account->kind == kind)
                (void)json_array_append_new(array, write_account(request->serve, fairshare, account));
    (void)json_object_set_new(body, "users", array);
    request_hold_json(request, 200, body);
}
