/* SPDX-License-Identifier: MIT */
/* mgpu partitions: the named sets of nodes, with their limits. */
#include <inttypes.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/options/list.h"
#include "cli/verbs/verbs.h"

static char *render_name(const struct view *view, const json_t *partition, enum color *color)
{
    _cleanup_free_ char *name = field_shown(partition, "name");
    return xasprintf("%s%s", name, json_is_true(json_object_get(partition, "default")) ? "*" : "");
}

static char *render_nodes(const struct view *view, const json_t *partition, enum color *color)
{
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    const json_t *name = NULL;
    json_array_foreach(json_object_get(partition, "nodes"), index, name)
        strings_add(&names, json_string_value(name));
    _cleanup_free_ char *list = hostlist_compress(&names);
    return list[0] != '\0' ? text_escape(list, HOSTLIST_MAX) : xstrdup("-");
}

static char *render_users(const struct view *view, const json_t *partition, enum color *color)
{
    return field_is_known(partition, "users") ? field_shown(partition, "users") : xstrdup("all");
}

static char *render_may_use(const struct view *view, const json_t *partition, enum color *color)
{
    return xstrdup(json_is_true(json_object_get(partition, "may_use")) ? "yes" : "no");
}

static const struct list_column columns[] = {
    { "name", "PARTITION", "name; * marks the default", "name", false, 0, render_name },
    { "nodes", "NODES", "nodes that it contains", NULL, false, 1, render_nodes },
    { "max_time", "MAX TIME", "maximum time limit", "max_time", true, 0, .form = list_seconds },
    { "default_time", "DEFAULT", "time limit of jobs that request none", "default_time", true, 0,
        .form = list_seconds },
    { "max_gpus", "MAX GPUS", "maximum GPUs of one job", "max_gpus", true, 0, NULL },
    { "priority", "PRIORITY", "added to the priority of its jobs", "priority", true, 0, NULL },
    { "users", "USERS", "who may use it", "users", false, 1, render_users },
    { "may_use", "YOU", "whether you may use it", "may_use", false, 0, render_may_use },
    { 0 },
};

static const struct list_kind kind = {
    .member = "partitions",
    .columns = columns,
    .normal = "name,nodes,max_time,max_gpus,priority,users,may_use",
    .wide = "name,nodes,max_time,default_time,max_gpus,priority,users,may_use",
};

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    struct screen screen;
    int r = list_begin(call, &kind, err);
    if (r != 0)
        return r > 0 ? EXIT_OK : r;
    r = client_get(&call->client, API_PATH "/partitions", &answer, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    return list_print(call, &kind, &screen, answer, stdout, err);
}

const struct command command_partitions = {
    .name = "partitions",
    .usage = "[OPTIONS]",
    .help = "List the partitions with their nodes and limits",
    .tables = { call_list_rows },
    .takes_nothing = true,
    .list = &kind,
    .run = run,
};
