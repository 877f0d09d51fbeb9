/* SPDX-License-Identifier: MIT */
/* mgpu top: the terminal dashboard (top/run.c), or a single screen of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/complete/complete.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/ps.h"
#include "cli/top/keys.h"
#include "cli/top/run.h"
#include "cli/top/verb.h"
#include "cli/verbs/verbs.h"

#define ONCE_SIZE "80x24" // columns and rows

static struct top_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_size(void *target, const char *value, struct error *err)
{
    struct top_options *options = options_of(target);
    _cleanup_free_ char *columns = xstrdup(value);
    char *rows = strchr(columns, 'x');
    if (rows == NULL)
        return error_set(err, -EINVAL, "--size: '%.40s' is not like 80x24", value);
    *rows++ = '\0';
    int r = parse_integer(columns, "--size", LAYOUT_COLUMNS_MIN, CANVAS_COLUMNS_MAX, &options->columns, err);
    return r < 0 ? r : parse_integer(rows, "--size", LAYOUT_ROWS_MIN, CANVAS_ROWS_MAX, &options->rows, err);
}

static int set_refresh(void *target, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, "--refresh", &ms, err);
    if (r < 0)
        return r;
    if (ms < REFRESH_MIN_MS || ms > REFRESH_MAX_MS)
        return error_set(err, -ERANGE, "--refresh: %.40s is not between 1 and 60 seconds", value);
    options_of(target)->refresh_ms = ms;
    return 0;
}

static int set_graph(void *target, const char *value, struct error *err)
{
    struct top_options *options = options_of(target);
    int r = graph_parse(value, &options->graph, err);
    options->has_graph = r == 0;
    return r < 0 ? error_wrap(err, "--graph") : 0;
}

static int set_theme(void *target, const char *value, struct error *err)
{
    if (top_theme_find(value) < 0)
        return error_set(
            err, -EINVAL, "--theme: '%.40s' is none of default, mono, high-contrast and colour-blind", value);
    options_of(target)->theme = value;
    return 0;
}

const struct option_row top_rows[] = {
    { 0, "once", NULL, "print one screen as text and exit", OPTION_INNER(flag, struct top_options, is_once) },
    { 0, "size", "COLUMNSxROWS", "size of that screen (default " ONCE_SIZE ")", set_size },
    { 0, "refresh", "SECONDS", "refresh interval of the GPUs, 1 to 60", set_refresh },
    { 0, "graph", "block|braille|ascii", "characters of bars and graphs", set_graph },
    { 0, "theme", "default|mono|high-contrast|colour-blind", "colours", set_theme },
    { 0 },
};

/* In a pipe: the information as lists. */
static int print_lists(struct call *call, struct error *err)
{
    int r = ps_show(call, API_PATH "/jobs", &(struct ps_choice){ .has_user = true }, stdout, err);
    if (r < 0)
        return r;
    (void)fputc('\n', stdout);
    return list_run(call, &gpu_list, API_PATH "/gpus", err);
}

static void choose(struct top *top, const struct top_options *options)
{
    if (options->has_graph)
        top->prefs.graph = options->graph;
    if (!top->screen.is_utf8)
        top->prefs.graph = GRAPH_ASCII;
    if (options->theme != NULL)
        top->prefs.theme = top_theme_find(options->theme);
    if (options->refresh_ms > 0)
        top->prefs.refresh_ms = options->refresh_ms;
}

static int show(struct call *call, const char *place, struct error *err)
{
    const struct top_options *options = call->options;
    _cleanup_free_ struct top *top = xcalloc(1, sizeof(*top));
    int r = options->rows > 0 ? 0 : set_size(call, ONCE_SIZE, err);
    if (r < 0)
        return r;
    int height = (int)options->rows, width = (int)options->columns;
    top_init(top, call);
    choose(top, options);
    r = options->is_once ? top_print(top, height, width, place, err) : top_run(top, place, err);
    if (r == -ENOTTY) {
        if (!call->is_quiet)
            talk_line("%s, printing one screen instead", err->message);
        r = top_print(top, height, width, place, err);
    }
    top_clear(top);
    return r < 0 ? r : EXIT_OK;
}

/* A view, or a job as other verbs take it; the caller frees *ret, which is NULL for neither. */
static int find_place(struct call *call, char *word, char **ret, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    struct error reason = { 0 };
    if (word == NULL || top_is_place(word)) {
        *ret = word != NULL ? xstrdup(word) : NULL;
        return 0;
    }
    int r = selector_resolve_by(&call->client, JOB_NAME_NEWEST, false, 1, &word, &jobs, &reason);
    if (r == 0 && jobs.count == 1 && top_is_place(jobs.items[0])) {
        *ret = xstrdup(jobs.items[0]);
        return 0;
    }
    if (r < 0 && r != -ENOENT) {
        *err = reason;
        return r;
    }
    (void)error_set(err, -EINVAL, "'%.60s' is neither a view nor a job of yours", word);
    return error_hint(
        err, "jobs, gpus, log, nodes, users, timeline, history, or the number or name of a job");
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct top_options *options = call->options;
    _cleanup_free_ char *place = NULL;
    if (argc > 1)
        return error_set(err, -EINVAL, "'%.60s' is not expected here", argv[1]);
    if (options->columns > 0 && !options->is_once)
        return error_set(err, -EINVAL, "--size requires --once");
    int r = find_place(call, argc > 0 ? argv[0] : NULL, &place, err);
    if (r < 0)
        return r;
    if (!options->is_once && (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1))
        return print_lists(call, err);
    return show(call, place, err);
}

static void complete_operand(const struct completion *completion)
{
    for (size_t i = 0; completion->operands == 0 && top_place_name(i) != NULL; i++)
        complete_add(completion, top_place_name(i), NULL);
}

const struct command command_top = {
    .name = "top",
    .aliases = { "tui" },
    .usage = "[OPTIONS] [PLACE|JOB]",
    .help = "Watch GPUs, jobs and logs on the whole screen, and act on them",
    .detail = "The bottom line shows the most important keys, ? all of them; q quits. It reconnects after a "
              "restart of\n"
              "mgpud. PLACE is jobs, gpus, log, nodes, users, timeline or history.",
    .tables = { top_rows },
    .options_size = sizeof(struct top_options),
    .complete_operand = complete_operand,
    .run = run,
};
