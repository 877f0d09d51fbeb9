/* SPDX-License-Identifier: MIT */
/* mgpu users: usage per user, and its effect on the order of the queue. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/options/list.h"
#include "cli/verbs/verbs.h"

#define HUNDREDTHS 100.0
#define TEXT_LIMIT 128

static char *ratio_text(const struct view *view, const json_t *user, const char *name)
{
    return field_is_known(user, name) ? xasprintf("%.2f", field_number(user, name, 0)) : xstrdup("-");
}

static char *render_gpus(const struct view *view, const json_t *user, enum color *color)
{
    if (!field_is_known(user, "gpus"))
        return xstrdup("-");
    return xasprintf("%g", (double)(int64_t)(field_number(user, "gpus", 0) * HUNDREDTHS + 0.5) / HUNDREDTHS);
}

/* The API's names of limits, and how they are displayed. */
static const struct {
    const char *key, *shown;
    double unit;
} limit_rows[] = {
    { "running", "jobs", 1 },
    { "gpus", "GPUs", 1 },
    { "gpu_seconds", "GPU-hours", LIST_HOUR_S },
};

static void append_limit(struct buffer *out, const char *key, const json_t *limits)
{
    buffer_append_text(out, out->length > 0 ? ", " : "");
    for (size_t i = 0; i < sizeof(limit_rows) / sizeof(limit_rows[0]); i++) {
        if (strcmp(limit_rows[i].key, key) != 0)
            continue;
        buffer_printf(out, "%g %s", field_number(limits, key, 0) / limit_rows[i].unit, limit_rows[i].shown);
        return;
    }
    _cleanup_free_ char *shown = text_escape(key, TEXT_LIMIT), *text = field_shown(limits, key);
    buffer_printf(out, "%s %s", shown, text); // from a newer mgpud
}

/* "10 jobs, 4 GPUs, 100 GPU-hours". */
static char *render_limits(const struct view *view, const json_t *user, enum color *color)
{
    struct buffer out = { 0 };
    const char *name = NULL;
    json_t *value = NULL, *limits = json_object_get(user, "limits");
    json_object_foreach(limits, name, value)
    {
        if (!json_is_null(value))
            append_limit(&out, name, limits);
    }
    if (out.length == 0)
        buffer_append_text(&out, "-");
    return buffer_take(&out);
}

/* "gpus=4;running=10", in the units of the API. */
static char *bare_limits(const json_t *user)
{
    struct buffer out = { 0 };
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(user, "limits"), name, value)
    {
        _cleanup_free_ char *text =
            json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        if (text != NULL)
            buffer_printf(&out, "%s%s=%s", out.length > 0 ? ";" : "", name, text);
    }
    return buffer_take(&out);
}

static const struct list_column columns[] = {
    { "user", "USER", "who", "user", false, 2, NULL },
    { "uid", "UID", "user id", "uid", true, 0, NULL },
    { "group", "GROUP", "group whose share includes the user", "group", false, 2, NULL },
    { "department", "DEPT", "department whose share includes the group", "department", false, 2, NULL },
    { "running", "RUNNING", "running jobs", "running", true, 0, NULL },
    { "queued", "QUEUED", "waiting jobs", "queued", true, 0, NULL },
    { "gpus", "GPUS", "GPUs in use now", "gpus", true, 0, render_gpus },
    { "hours", "GPU-HOURS", "GPU-hours used; past usage decays", "gpu_seconds", true, 0, .form = list_hours,
        .unit = LIST_HOUR_S },
    { "charged", "CHARGED", "the same, or CPUs or memory as GPU-hours where they are the larger part",
        "charged_seconds", true, 0, .form = list_hours, .unit = LIST_HOUR_S },
    { "share", "SHARE", "fair share of the machine, while all with jobs want it", "share", true, 0,
        .form = ratio_text },
    { "factor", "FACTOR", "fair-share factor: 1 runs first, 0 last", "factor", true, 0, .form = ratio_text },
    { "week_asked", "7D ASKED", "GPU-hours allocated to ended jobs in the last 7 days", "week_gpu_seconds",
        true, 0, .form = list_hours, .unit = LIST_HOUR_S },
    { "week_used", "7D USED", "GPU-hours used by them", "week_gpu_seconds_used", true, 0, .form = list_hours,
        .unit = LIST_HOUR_S },
    { "week_wasted", "7D WASTED", "GPU-hours allocated to them but not used", "week_gpu_seconds_wasted", true,
        0, .form = list_hours, .unit = LIST_HOUR_S },
    { "limits", "LIMITS", "limits", NULL, false, 1, render_limits, bare_limits },
    { 0 },
};

static const struct list_kind kind = {
    .member = "users",
    .columns = columns,
    .normal = "user,group,department,running,queued,gpus,hours,share,factor,limits",
    .wide = "user,uid,group,department,running,queued,gpus,hours,share,factor,limits,charged,week_asked,"
            "week_used,week_wasted",
};

/* True if a column of the last week is or may be shown: with -o wide, or one of their names. */
static bool is_week_shown(const struct list_choice *choice)
{
    return (choice->output != NULL &&
               (strcmp(choice->output, "wide") == 0 || strstr(choice->output, "week_") != NULL)) ||
           (choice->sort != NULL && strstr(choice->sort, "week_") != NULL);
}

static void copy_week(json_t *account, const json_t *sum)
{
    (void)json_object_set(account, "week_gpu_seconds", json_object_get(sum, "gpu_seconds"));
    (void)json_object_set(account, "week_gpu_seconds_used", json_object_get(sum, "gpu_seconds_used"));
    (void)json_object_set(account, "week_gpu_seconds_wasted", json_object_get(sum, "gpu_seconds_wasted"));
}

/* An account belongs to a user or a group: "user" or "group" is the key of its name. */
static int attach_week(struct call *call, const char *word, json_t *accounts, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/history?since=7d&by=%s", word);
    size_t i = 0, k = 0;
    json_t *account = NULL, *sum = NULL;
    int r = client_get(&call->client, path, &answer, err);
    if (r < 0)
        return r;
    json_array_foreach(accounts, i, account)
    {
        const char *name = field_text(account, word);
        json_array_foreach(json_object_get(answer, "sums"), k, sum)
        {
            if (name != NULL && field_is(sum, word, name))
                copy_week(account, sum);
        }
    }
    return 0;
}

static bool has_limits(const json_t *account)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(account, "limits"), name, value)
    {
        if (!json_is_null(value))
            return true;
    }
    return false;
}

static bool is_user(const json_t *accounts, const char *name)
{
    size_t i = 0;
    json_t *account = NULL;
    json_array_foreach(accounts, i, account)
    {
        if (field_is(account, "user", name))
            return true;
    }
    return false;
}

/* A group of one user that has the user's name adds nothing to the user's row. */
static void drop_private_groups(json_t *accounts)
{
    for (size_t i = json_array_size(accounts); i-- > 0;) {
        const json_t *account = json_array_get(accounts, i);
        const char *group = field_text(account, "group");
        bool is_group = field_text(account, "user") == NULL && group != NULL;
        if (is_group && is_user(accounts, group) && !has_limits(account) &&
            !field_is_known(account, "department"))
            (void)json_array_remove(accounts, i);
    }
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    struct screen screen;
    int r = list_begin(call, &kind, err);
    if (r != 0)
        return r > 0 ? EXIT_OK : r;
    r = client_get(&call->client, API_PATH "/users", &answer, err);
    json_t *accounts = json_object_get(answer, "users");
    if (r == 0 && is_week_shown(&call->list))
        r = attach_week(call, "user", accounts, err);
    if (r == 0 && is_week_shown(&call->list))
        r = attach_week(call, "group", accounts, err);
    if (r < 0)
        return r;
    if (!list_is_machine(call))
        drop_private_groups(accounts);
    screen_open(&screen, STDOUT_FILENO, call->color);
    return list_print(call, &kind, &screen, answer, stdout, err);
}

const struct command command_users = {
    .name = "users",
    .usage = "[OPTIONS]",
    .help = "List the users with their usage and fair share",
    .tables = { call_list_rows },
    .takes_nothing = true,
    .list = &kind,
    .run = run,
};
