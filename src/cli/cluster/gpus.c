/* SPDX-License-Identifier: MIT */
/* mgpu gpus: the users, current load and load history of GPUs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/strings.h"
#include "base/utc.h"
#include "cli/api/exit_code.h"
#include "cli/cluster/gpu_topology.h"
#include "cli/complete/complete.h"
#include "cli/follow/watch.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/gpu_past.h"
#include "cli/term/when.h"
#include "cli/verbs/verbs.h"

#define FRAME_LINES 3   // header, line about omitted GPUs, prompt
#define STATE_SHOWN 200 // GPUs of each state shown on a terminal, unless specified otherwise
#define LIMIT_MAX   10000

struct gpus_options {
    bool is_line, is_topology, has_limit;
    int64_t limit; // of each state; 0: none
    int64_t watch_ms;
    const char *gpu; // only this one, or those of this node; NULL: all
    struct gpu_past_question past;
    char since[32]; // of a moment
};

static struct gpus_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_watch(void *target, const char *value, struct error *err)
{
    return watch_parse(value, &options_of(target)->watch_ms, err);
}

static int set_history(void *target, const char *value, struct error *err)
{
    struct gpus_options *options = options_of(target);
    int64_t ms = 0;
    options->past.since = value; // an age, which advances with --watch
    if (parse_duration(value, "--history", &ms, NULL) == 0)
        return 0;
    int r = when_parse_past(value, "--history", clock_wall_ms(), &when_local, &ms, err);
    utc_format(ms, options->since, sizeof(options->since));
    options->past.since = options->since;
    return r;
}

static int set_step(void *target, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, "--step", &ms, err);
    if (r == 0)
        options_of(target)->past.step = value;
    return r;
}

static int set_limit(void *target, const char *value, struct error *err)
{
    options_of(target)->has_limit = true;
    return parse_integer(value, "--limit", 0, LIMIT_MAX, &options_of(target)->limit, err);
}

static const struct option_row rows[] = {
    { 0, "line", NULL, "one short line, for the status bar of tmux",
        OPTION_INNER(flag, struct gpus_options, is_line) },
    { 0, "topology", NULL, "how the GPUs of each node are connected",
        OPTION_INNER(flag, struct gpus_options, is_topology) },
    { 0, "limit", "N", "at most N GPUs of each state (200 on a terminal; 0: all)", set_limit },
    { 'w', "watch", "[SECONDS]", "refresh at this interval (2)", set_watch },
    { 0, "history", "TIME", "load since then: 10m, 24h, 18:00, 2026-11-21; at most a week", set_history },
    { 0, "step", "TIME", "duration of a step: 1 to 59 seconds, or minutes", set_step },
    { 0 },
};

static bool is_named(const json_t *gpu, const char *name, bool has_one_node)
{
    _cleanup_free_ char *index = xasprintf("%" PRId64, field_integer(gpu, "index", 0));
    _cleanup_free_ char *full = xasprintf("%s:%s", field_text(gpu, "node"), index);
    return text_equal(name, full) || field_is(gpu, "uuid", name) || (has_one_node && text_equal(name, index));
}

/* Removes all but the named one. */
static int keep_named(json_t *gpus, const char *name, struct error *err)
{
    const json_t *first = json_array_get(gpus, 0), *last = json_array_get(gpus, json_array_size(gpus) - 1);
    bool has_one_node = text_equal(field_text(first, "node"), field_text(last, "node"));
    for (size_t i = json_array_size(gpus); i-- > 0;)
        if (!is_named(json_array_get(gpus, i), name, has_one_node))
            (void)json_array_remove(gpus, i);
    return json_array_size(gpus) > 0
               ? 0
               : error_set(err, -ENOENT, "there is no GPU %.100s, and no node of that name", name);
}

static int get(struct call *call, const char *filter, const char *value, json_t **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    buffer_append_text(&path, list_is_machine(call) ? API_PATH "/gpus" : API_PATH "/gpus?sparse=1");
    if (filter != NULL) {
        buffer_printf(&path, "%s%s=", list_is_machine(call) ? "?" : "&", filter);
        http_append_encoded(&path, value);
    }
    return client_get(&call->client, buffer_text(&path), ret, err);
}

/* "node:3", or the name of a node; a number or a UUID is searched for among all. */
static int get_named(struct call *call, const char *name, json_t **ret, struct error *err)
{
    const char *colon = strrchr(name, ':');
    _cleanup_free_ char *node = xstrndup(name, colon != NULL ? (size_t)(colon - name) : strlen(name));
    int r = get(call, "node", node, ret, err);
    if (r < 0 || (colon == NULL && json_array_size(json_object_get(*ret, "gpus")) > 0))
        return r;
    if (colon == NULL) {
        json_decref(*ret);
        r = get(call, NULL, NULL, ret, err);
    }
    return r == 0 ? keep_named(json_object_get(*ret, "gpus"), name, err) : r;
}

static int get_top(struct call *call, int64_t limit, json_t **ret, struct error *err)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, limit);
    return get(call, limit > 0 ? "top" : NULL, text, ret, err);
}

static size_t count_states(const json_t *gpus)
{
    _cleanup_json_ json_t *states = json_object();
    size_t i = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, i, gpu)
    {
        const char *state = field_text(gpu, "state");
        (void)json_object_set_new(states, state != NULL ? state : "", json_true());
    }
    return json_object_size(states);
}

/* How many GPUs of each state a terminal has lines for; 0: all. */
static int64_t find_room(const json_t *gpus)
{
    unsigned height = 0, width = 0;
    if (!screen_size(&height, &width) || height <= FRAME_LINES ||
        json_array_size(gpus) <= height - FRAME_LINES)
        return 0;
    int64_t each = (int64_t)((height - FRAME_LINES) / count_states(gpus));
    return each > 0 ? each : 1;
}

/* A list that is too long to read is shortened on a terminal; output for programs is complete. */
static int get_list(struct call *call, json_t **ret, struct error *err)
{
    const struct gpus_options *options = call->options;
    bool is_read_by_eye = isatty(STDOUT_FILENO) == 1 && !list_is_machine(call) && call->list.sort == NULL &&
                          !options->is_line && !options->is_topology;
    int64_t limit = options->has_limit ? options->limit : is_read_by_eye ? STATE_SHOWN : 0;
    int r = get_top(call, limit, ret, err);
    int64_t room =
        r == 0 && is_read_by_eye && !options->has_limit ? find_room(json_object_get(*ret, "gpus")) : 0;
    if (room == 0)
        return r;
    json_decref(*ret);
    *ret = NULL;
    return get_top(call, room, ret, err);
}

/* "7800 more used, 12 more free" */
static void print_omitted(const struct screen *screen, json_t *omitted, FILE *out)
{
    const char *state = NULL, *before = "";
    json_t *count = NULL;
    if (json_object_size(omitted) == 0)
        return;
    (void)fputs(screen_color(screen, COLOR_DIM), out);
    json_object_foreach(omitted, state, count)
    {
        (void)fprintf(out, "%s%" PRId64 " more %s", before, (int64_t)json_integer_value(count), state);
        before = ", ";
    }
    (void)fprintf(out, ": mgpu gpus NODE, mgpu gpus --limit 0%s\n", screen_color(screen, COLOR_NONE));
}

static int show_past(void *arg, FILE *out, struct error *err)
{
    struct call *call = arg;
    const struct gpus_options *options = call->options;
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    int r = gpu_past_get(&call->client, &options->past, &answer, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    return list_print(call, &gpu_past_list, &screen, answer, out, err);
}

static int show(void *arg, FILE *out, struct error *err)
{
    struct call *call = arg;
    const struct gpus_options *options = call->options;
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    int r = options->gpu != NULL ? get_named(call, options->gpu, &answer, err) : get_list(call, &answer, err);
    if (r < 0)
        return r;
    if (gpu_past_is_shown(call))
        gpu_past_attach(&call->client, json_object_get(answer, "gpus"));
    if (options->is_line) {
        gpu_print_line(json_object_get(answer, "gpus"), out);
        return 0;
    }
    screen_open(&screen, STDOUT_FILENO, call->color);
    if (json_array_size(json_object_get(answer, "gpus")) == 0 && !list_is_machine(call)) {
        (void)fputs("no GPUs found; run mgpu doctor\n", out);
        return 0;
    }
    if (options->is_topology && !list_is_machine(call)) {
        _cleanup_json_ json_t *nodes = NULL;
        r = client_get(&call->client, API_PATH "/nodes", &nodes, err);
        gpu_topology_print(json_object_get(answer, "gpus"), json_object_get(nodes, "nodes"), &screen, out);
        return r;
    }
    r = list_print(call, &gpu_list, &screen, answer, out, err);
    if (r == 0 && !list_is_machine(call) && screen.is_tty)
        gpu_print_external(json_object_get(answer, "gpus"), out);
    if (r == 0 && !list_is_machine(call))
        gpu_print_tests(json_object_get(answer, "gpus"), out);
    if (r == 0 && screen.is_tty && !list_is_machine(call) && !call->is_quiet && !call->list.is_headless)
        print_omitted(&screen, json_object_get(answer, "omitted"), out);
    return r;
}

static int check_options(struct gpus_options *options, int argc, char **argv, struct error *err)
{
    if (argc > 1)
        return error_set(err, -EINVAL, "only one GPU or node can be given; unexpected '%.60s'", argv[1]);
    options->gpu = options->past.gpu = argc == 1 ? argv[0] : NULL;
    if (options->past.step != NULL && options->past.since == NULL)
        return error_set(err, -EINVAL, "--step requires --history");
    if (options->past.since != NULL && options->is_line)
        return error_set(err, -EINVAL, "--line and --history cannot be combined");
    if (options->is_topology && (options->is_line || options->past.since != NULL))
        return error_set(err, -EINVAL, "--topology cannot be combined with --line or --history");
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct gpus_options *options = call->options;
    bool is_past = options->past.since != NULL;
    const struct list_kind *kind = is_past ? &gpu_past_list : &gpu_list;
    watch_show_fn shown = is_past ? show_past : show;
    if (list_print_help(&call->list, kind, stdout))
        return EXIT_OK;
    int r = check_options(options, argc, argv, err);
    if (r == 0)
        r = list_check(&call->list, kind, err);
    if (r < 0)
        return r;
    return options->watch_ms > 0 ? watch_run(call, options->watch_ms, shown, call, err)
                                 : shown(call, stdout, err);
}

const struct command command_gpus = {
    .name = "gpus",
    .aliases = { "status", "smi" },
    .usage = "[OPTIONS] [GPU|NODE]",
    .help = "Show the GPUs, their jobs, and their current or past load",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct gpus_options),
    .list = &gpu_list,
    .complete_operand = complete_gpus,
    .run = run,
};
