/* SPDX-License-Identifier: MIT */
/* mgpu reserve add|list|rm: GPUs reserved for some users for some time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "base/utc.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/cluster/numbered.h"
#include "cli/complete/complete.h"
#include "cli/options/ask.h"
#include "cli/options/list.h"
#include "cli/term/when.h"
#include "cli/verbs/verbs.h"

#define TEXT_LIMIT 128

struct add_options {
    json_t *body;
};

static json_t *body_of(void *target)
{
    struct add_options *options = ((struct call *)target)->options;
    if (options->body == NULL)
        options->body = json_object();
    return options->body;
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    int64_t count = 0;
    int r = parse_integer(value, "--gpus", 1, INT32_MAX, &count, err);
    return r < 0 ? r : json_object_set_new(body_of(target), "gpus", json_integer(count));
}

static int set_gpu_ids(void *target, const char *value, struct error *err)
{
    return ask_set(body_of(target), NULL, "gpu_ids", "--gpu-ids", value, err);
}

static int set_users(void *target, const char *value, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    json_t *users = json_array();
    (void)json_object_set_new(body_of(target), "users", users);
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;) {
        if (name[0] == '\0')
            return error_set(err, -EINVAL, "--users: '%.60s' contains an empty name", value);
        if (json_array_append_new(users, json_string(name)) < 0)
            return error_set(err, -EINVAL, "--users: a name is not UTF-8 text");
    }
    return 0;
}

static int set_from(void *target, const char *value, struct error *err)
{
    char from[64];
    int64_t from_ms = 0;
    int r = when_parse(value, "--from", clock_wall_ms(), &when_local, &from_ms, err);
    if (r < 0)
        return r;
    utc_format(from_ms, from, sizeof(from));
    return json_object_set_new(body_of(target), "from", json_string(from));
}

static int set_for(void *target, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, "--for", &ms, err);
    if (r < 0)
        return r;
    if (ms < 1000)
        return error_set(err, -ERANGE, "--for: %.60s is less than a second", value);
    return json_object_set_new(body_of(target), "for_s", json_integer(ms / 1000));
}

static int set_name(void *target, const char *value, struct error *err)
{
    if (value[0] == '\0')
        return error_set(err, -EINVAL, "--name: the value is empty");
    json_t *name = json_string(value);
    if (name == NULL)
        return error_set(err, -EINVAL, "--name: the value is not UTF-8 text");
    return json_object_set_new(body_of(target), "name", name);
}

static const struct option_row add_rows[] = {
    { 'g', "gpus", "N", "number of GPUs", set_gpus },
    { 'G', "gpu-ids", "LIST", "or exactly these GPUs: 0,2-3 or gpu1:0,1;gpu2:0", set_gpu_ids },
    { 'u', "users", "LIST", "users of the reservation: ada,bo", set_users },
    { 0, "from", "TIME", "start: 18:00, 'Fri 18:00', +2h (now)", set_from },
    { 0, "for", "TIME", "duration: 12h, 2-00:00:00", set_for },
    { 'J', "name", "NAME", "job name", set_name },
    { 0 },
};

static int check_add(const json_t *body, struct error *err)
{
    bool has_count = json_object_get(body, "gpus") != NULL,
         has_ids = json_object_get(body, "gpu_ids") != NULL;
    if (has_count && has_ids)
        return error_set(err, -EINVAL, "--gpus and --gpu-ids cannot be combined");
    if (!has_count && !has_ids)
        return error_set(err, -EINVAL, "no GPUs given: --gpus 2 or --gpu-ids 0,1");
    if (json_object_get(body, "users") == NULL)
        return error_set(err, -EINVAL, "no users given: --users ada,bo");
    if (json_object_get(body, "for_s") == NULL)
        return error_set(err, -EINVAL, "no duration given: --for 12h");
    return 0;
}

static int run_add(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *body = body_of(call);
    int r = check_add(body, err);
    if (r == 0)
        r = client_call(&call->client, "POST", API_PATH "/reservations", body, &answer, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_page(answer, stdout);
    } else {
        (void)printf("%" PRId64 "\n", field_integer(answer, "id", 0));
    }
    return EXIT_OK;
}

static void clear_add(void *options)
{
    json_decrefp(&((struct add_options *)options)->body);
}

static char *render_users(const struct view *view, const json_t *row, enum color *color)
{
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *user = NULL;
    json_array_foreach(json_object_get(row, "users"), index, user)
    {
        const char *name = json_string_value(user);
        _cleanup_free_ char *shown = text_escape(name == NULL ? "?" : name, TEXT_LIMIT);
        buffer_printf(&out, "%s%s", index > 0 ? "," : "", shown);
    }
    if (out.length == 0)
        buffer_append_text(&out, "-");
    return buffer_take(&out);
}

/* Always with the day, because reservations are compared with each other. */
static char *day_text(const struct view *view, const json_t *row, const char *key)
{
    char text[64];
    int64_t when_ms = time_parse(field_text(row, key));
    time_format_date(when_ms, view->times, text, sizeof(text));
    return xstrdup(when_ms > 0 ? text : "-");
}

static const struct list_column columns[] = {
    { "id", "ID", "its number", "id", true, 0, NULL },
    { "name", "NAME", "its name", "name", false, 2, NULL },
    { "gpus", "GPUS", "number of GPUs", "gpus", true, 0, NULL },
    { "gpu_ids", "WHERE", "which GPUs", "gpu_ids", false, 0, NULL },
    { "users", "USERS", "its users", NULL, false, 1, render_users },
    { "from", "FROM", "start", "from", false, 0, .form = day_text },
    { "until", "UNTIL", "end", "until", false, 0, .form = day_text },
    { "state", "STATE", "planned or active", "state", false, 0, NULL },
    { 0 },
};

static const struct list_kind kind = {
    .member = "reservations",
    .columns = columns,
    .normal = "id,name,gpus,gpu_ids,users,from,until,state",
    .wide = "id,name,gpus,gpu_ids,users,from,until,state",
};

static int run_list(struct call *call, int argc, char **argv, struct error *err)
{
    if (call->list.sort == NULL && !list_is_machine(call))
        call->list.sort = "from";
    return list_run(call, &kind, API_PATH "/reservations", err);
}

static int run_rm(struct call *call, int argc, char **argv, struct error *err)
{
    static const struct numbered reservations = { "reservation", "there is", API_PATH "/reservations",
        "reservations", "mgpu reserve list" };
    int r = numbered_delete(call, &reservations, argc, argv, err);
    return r < 0 ? r : EXIT_OK;
}

static const struct command add_command = {
    .name = "reserve add",
    .usage = "--gpus N|--gpu-ids LIST --users LIST --for TIME [OPTIONS]",
    .help = "Reserve GPUs for some users, and print the number of the reservation (operators)",
    .detail = "Other users' jobs can use reserved GPUs if they end before the GPUs are needed.",
    .tables = { add_rows },
    .options_size = sizeof(struct add_options),
    .takes_nothing = true,
    .run = run_add,
    .clear = clear_add,
};

static const struct command list_command = {
    .name = "reserve list",
    .usage = "[OPTIONS]",
    .help = "List the reservations",
    .tables = { call_list_rows },
    .takes_nothing = true,
    .list = &kind,
    .run = run_list,
};

static const struct command rm_command = {
    .name = "reserve rm",
    .usage = "NAME|NUMBER...",
    .help = "Remove reservations (operators)",
    .complete_operand = complete_reservations,
    .run = run_rm,
};

static const struct command *const actions[] = { &add_command, &list_command, &rm_command, NULL };

const struct command command_reserve = {
    .name = "reserve",
    .usage = "add|list|rm ...",
    .help = "Reserve GPUs for some users and some time",
    .actions = actions,
};
