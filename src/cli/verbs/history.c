/* SPDX-License-Identifier: MIT */
/* mgpu history: ended jobs, also old ones, and the GPU usage of users, groups, days and nodes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/utc.h"
#include "cli/api/exit_code.h"
#include "cli/options/selector.h"
#include "cli/show/history_columns.h"
#include "cli/term/when.h"
#include "cli/verbs/verbs.h"
#include "wire/limits.h"

#define LIMIT_DEFAULT 100
#define FRAME_LINES   4U // header, line about omitted jobs, how to see more, prompt
#define LINES_MIN     4U
#define SUMS_SINCE    "7d"

struct history_options {
    const char *user, *states, *name, *by;
    int64_t since_ms, until_ms; // 0: not given
    int64_t limit;              // 0: not given
    bool is_everybody, is_about_forecasts;
};

static struct history_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

/* Only these states have a history. */
static int set_states(void *target, const char *value, struct error *err)
{
    static const char *const over[] = { "done", "failed", "cancelled" };
    options_of(target)->states = value;
    for (const char *word = value;; word++) {
        size_t length = strcspn(word, ","), i = 0;
        while (i < 3 && (strlen(over[i]) != length || strncmp(over[i], word, length) != 0))
            i++;
        if (i == 3)
            return error_set(err, -EINVAL, "-s: '%.*s' is not done, failed or cancelled",
                length < 40 ? (int)length : 40, word);
        word += length;
        if (*word == '\0')
            return 0;
    }
}

static int set_since(void *target, const char *value, struct error *err)
{
    return when_parse_past(
        value, "--since", clock_wall_ms(), &when_local, &options_of(target)->since_ms, err);
}

static int set_until(void *target, const char *value, struct error *err)
{
    return when_parse_past(
        value, "--until", clock_wall_ms(), &when_local, &options_of(target)->until_ms, err);
}

static int set_by(void *target, const char *value, struct error *err)
{
    options_of(target)->by = value;
    if (history_sums(value) != NULL)
        return 0;
    return error_set(err, -EINVAL, "--by: '%.40s' is not user, group, day or node", value);
}

static const struct option_row rows[] = {
    { 'a', "all-users", NULL, "jobs of all users", OPTION_INNER(flag, struct history_options, is_everybody) },
    { 'u', "user", "USER", "jobs of this user", OPTION_INNER(text, struct history_options, user) },
    { 'n', "name", "GLOB", "only jobs whose name matches", OPTION_INNER(text, struct history_options, name) },
    { 's', "state", "LIST", "only these states: done,failed,cancelled", set_states },
    { 0, "since", "TIME", "ended since then: 12h, 7d, 18:00, 'Fri 18:00', today, 2026-11-22", set_since },
    { 0, "until", "TIME", "ended before that", set_until },
    { 0, "limit", "N", "maximum number of jobs, the newest (100; on a terminal what fits)",
        OPTION_INNER(integer, struct history_options, limit), OPTION_RANGE(1, LIMIT_LIST_JOBS) },
    { 0, "forecasts", NULL, "how good the forecasts of starts were here",
        OPTION_INNER(flag, struct history_options, is_about_forecasts) },
    { 0, "by", "WHAT", "totals of the last week per user, group, day or node", set_by },
    { 0 },
};

static void append_filter(struct buffer *path, const char *key, const char *value)
{
    if (value == NULL)
        return;
    buffer_printf(path, "%s%s=", strchr(buffer_text(path), '?') == NULL ? "?" : "&", key);
    http_append_encoded(path, value);
}

static void append_moment(struct buffer *path, const char *key, int64_t ms)
{
    char text[32];
    if (ms == 0)
        return;
    utc_format(ms, text, sizeof(text));
    append_filter(path, key, text);
}

/* As many jobs as a terminal has lines for, so that the header stays visible; programs get LIMIT_DEFAULT. */
static int64_t choose_limit(const struct call *call)
{
    unsigned height = 0, width = 0;
    if (isatty(STDOUT_FILENO) != 1 || list_is_machine(call) || call->list.sort != NULL ||
        !screen_size(&height, &width))
        return LIMIT_DEFAULT;
    int64_t room = height > FRAME_LINES + LINES_MIN ? height - FRAME_LINES : LINES_MIN;
    return room < LIMIT_DEFAULT ? room : LIMIT_DEFAULT;
}

static void build_path(const struct history_options *options, int64_t most, struct buffer *path)
{
    bool is_own = !options->is_everybody && options->user == NULL && options->by == NULL;
    _cleanup_free_ char *own = is_own ? selector_own_user() : NULL;
    _cleanup_free_ char *limit = xasprintf("%" PRId64, options->limit > 0 ? options->limit : most);
    buffer_append_text(path, API_PATH "/history");
    append_filter(path, "user", is_own ? own : options->user);
    append_filter(path, "name", options->name);
    append_filter(path, "state", options->states);
    append_moment(path, "since", options->since_ms);
    append_moment(path, "until", options->until_ms);
    append_filter(path, "by", options->by);
    if (options->by == NULL)
        append_filter(path, "limit", limit);
    else if (options->since_ms == 0)
        append_filter(path, "since", SUMS_SINCE);
}

/* Forecasts are stored for all users together, so none can be selected. */
static int run_forecasts(struct call *call, struct error *err)
{
    const struct history_options *options = call->options;
    if (options->by != NULL || options->limit > 0 || options->user != NULL || options->states != NULL ||
        options->name != NULL || options->since_ms != 0 || options->until_ms != 0)
        return error_set(err, -EINVAL, "--forecasts cannot be combined with a selection of jobs");
    return list_run(call, history_forecasts(), API_PATH "/forecasts", err);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct history_options *options = call->options;
    if (options->until_ms != 0 && options->since_ms > options->until_ms)
        return error_set(err, -EINVAL, "--since is after --until");
    const struct list_kind *kind = options->by != NULL ? history_sums(options->by) : history_jobs();
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    struct screen screen;
    if (options->is_about_forecasts)
        return run_forecasts(call, err);
    if (options->by != NULL && options->limit > 0)
        return error_set(err, -EINVAL, "--limit and --by cannot be combined");
    int r = list_begin(call, kind, err);
    if (r != 0)
        return r > 0 ? EXIT_OK : r;
    int64_t most = choose_limit(call);
    build_path(options, most, &path);
    r = client_get(&call->client, buffer_text(&path), &answer, err);
    if (r < 0)
        return r;
    if (options->by != NULL && !list_is_machine(call))
        history_measure_bars(json_object_get(answer, "sums"));
    screen_open(&screen, STDOUT_FILENO, call->color);
    r = list_print(call, kind, &screen, answer, stdout, err);
    bool is_cut = options->by == NULL && options->limit == 0 && most < LIMIT_DEFAULT &&
                  json_array_size(json_object_get(answer, "jobs")) >= (size_t)most;
    if (r >= 0 && is_cut && !call->is_quiet)
        (void)printf("older ones: mgpu history --limit 1000\n");
    return r;
}

const struct command command_history = {
    .name = "history",
    .aliases = { "sacct" },
    .usage = "[OPTIONS]",
    .help = "List ended jobs, or sum up their usage",
    .detail = "Yours, or all users' with -a, newest first. With --by, totals over all users. GPU-hours count "
              "from the\n"
              "allocation of the GPUs to the end of the job; USED is their mean utilization.",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct history_options),
    .list = &history_own,
    .takes_nothing = true,
    .run = run,
};
