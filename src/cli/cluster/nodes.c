/* SPDX-License-Identifier: MIT */
/* mgpu nodes: the machines, their state, and their resources. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/complete/complete.h"
#include "cli/follow/watch.h"
#include "cli/options/maintenance_text.h"
#include "cli/show/node_unreachable_text.h"
#include "cli/verbs/verbs.h"

struct nodes_options {
    int64_t watch_ms;
    int argc;
    char **argv; // names, or none for all
};

static int set_watch(void *target, const char *value, struct error *err)
{
    return watch_parse(value, &((struct nodes_options *)((struct call *)target)->options)->watch_ms, err);
}

static const struct option_row rows[] = {
    { 'w', "watch", "[SECONDS]", "refresh at this interval (2)", set_watch },
    { 0 },
};

static char *render_state(const struct view *view, const json_t *node, enum color *color)
{
    bool is_up = json_is_true(json_object_get(node, "up"));
    const char *state = field_text(node, "state");
    state = state != NULL ? state : is_up ? "up" : "down";
    bool is_lost = strcmp(state, "down") == 0 || strcmp(state, "unreachable") == 0;
    *color = strcmp(state, "up") == 0 ? COLOR_GREEN : is_lost ? COLOR_RED : COLOR_MAGENTA;
    _cleanup_free_ char *text = maintenance_text(view, node, state), *since = away_since(view, node);
    int64_t stopping = field_integer(node, "stopping", 0);
    if (since != NULL && strcmp(state, "unreachable") == 0)
        return xasprintf("%s %s", text, since);
    if (stopping > 0)
        return xasprintf(
            "%s, ending %" PRId64 " orphaned attempt%s", text, stopping, stopping == 1 ? "" : "s");
    return take_ptr(text);
}

static char *render_parking(const struct view *view, const json_t *node, enum color *color)
{
    const char *state = field_text(json_object_get(node, "parking"), "state");
    *color = text_equal(state, "failed") ? COLOR_RED : *color;
    return xstrdup(state != NULL && !text_equal(state, "none") ? state : "-");
}

static const struct list_column columns[] = {
    { "node", "NODE", "its name", "name", false, 0, NULL },
    { "state", "STATE", "up, unreachable, down, drained or fenced, and why", "state", false, 1,
        render_state },
    { "gpus", "GPUS", "number of GPUs", "gpus", true, 0, NULL },
    { "drained", "DRAINED", "GPUs taken out of service by mgpu", "gpus_drained", true, 0, NULL },
    { "cpus", "CPUS", "number of CPUs", "cpus", true, 0, NULL },
    { "mem", "MEM", "host memory", "memory_bytes", true, 0, .form = list_size },
    { "backend", "BACKEND", "GPU backend", "gpu_backend", false, 0, NULL },
    { "driver", "DRIVER", "version of the driver of its GPUs", "driver", false, 0, NULL },
    { "parking", "PARKING", "whether parking was tested: passed, failed, outdated, untested", "parking",
        false, 0, render_parking },
    { "address", "ADDRESS", "address it connected from; -: this machine", "address", false, 0, NULL },
    { "since", "SINCE", "time of the last connect or disconnect", "since", false, 0, .form = list_moment },
    { "version", "VERSION", "version of its agent", "version", false, 0, NULL },
    { 0 },
};

static const struct list_kind kind = {
    .member = "nodes",
    .columns = columns,
    .normal = "node,state,since,address,gpus,drained,cpus,mem,version",
    .wide = "node,state,since,address,gpus,drained,cpus,mem,backend,driver,version",
};

/* Keeps only the nodes named; each must exist. */
static int choose(const struct nodes_options *options, json_t *answer, struct error *err)
{
    json_t *all = json_object_get(answer, "nodes"), *chosen = json_array();
    for (int i = 0; i < options->argc; i++) {
        size_t index = 0, before = json_array_size(chosen);
        json_t *node = NULL;
        json_array_foreach(all, index, node) if (field_is(node, "name", options->argv[i]))(void)
            json_array_append(chosen, node);
        if (json_array_size(chosen) == before) {
            json_decref(chosen);
            (void)error_set(err, -ENOENT, "there is no node '%.100s'", options->argv[i]);
            return error_hint(err, "all nodes: mgpu nodes");
        }
    }
    return json_object_set_new(answer, "nodes", chosen);
}

static int show(void *arg, FILE *out, struct error *err)
{
    struct call *call = arg;
    const struct nodes_options *options = call->options;
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(&call->client, API_PATH "/nodes", &answer, err);
    if (r == 0 && options->argc > 0)
        r = choose(options, answer, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    return list_print(call, &kind, &screen, answer, out, err);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct nodes_options *options = call->options;
    options->argc = argc;
    options->argv = argv;
    int r = list_begin(call, &kind, err);
    if (r != 0)
        return r > 0 ? EXIT_OK : r;
    return options->watch_ms > 0 ? watch_run(call, options->watch_ms, show, call, err)
                                 : show(call, stdout, err);
}

const struct command command_nodes = {
    .name = "nodes",
    .usage = "[OPTIONS] [NODE...]",
    .help = "List the nodes and their resources",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct nodes_options),
    .list = &kind,
    .complete_operand = complete_nodes,
    .run = run,
};
