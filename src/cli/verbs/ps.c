/* SPDX-License-Identifier: MIT */
/* mgpu ps: jobs as a table. The server filters; this file builds the query and prints the result. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/follow/watch.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/show/ps.h"
#include "cli/show/ps_arrays.h"
#include "cli/show/why_brief.h"
#include "cli/term/wrapped.h"
#include "cli/verbs/verbs.h"
#include "job/array.h"

#define ENDED_SHOWN    20U // number of ended jobs, unless specified otherwise
#define STATE_SHOWN    200 // jobs of each state on a terminal, unless specified otherwise
#define LIMIT_MAX      10000
#define NAME_SHOWN_MAX 64
#define FRAME_LINES    4U // header, summary of two lines, prompt
#define LINES_MIN      4U
#define NARROW         120U // columns; on narrower screens there is no space for the sentence of a reason

struct ps_options {
    const char *user, *states, *name;
    bool is_everybody, is_ended, has_elements, has_limit;
    int64_t limit; // of each state; 0: none
    int64_t watch_ms;
};

static struct ps_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_states(void *target, const char *value, struct error *err)
{
    int r = job_states_check("-s", value, err);
    if (r == 0)
        options_of(target)->states = value;
    return r;
}

static int set_watch(void *target, const char *value, struct error *err)
{
    return watch_parse(value, &options_of(target)->watch_ms, err);
}

static int set_limit(void *target, const char *value, struct error *err)
{
    options_of(target)->has_limit = true;
    return parse_integer(value, "--limit", 0, LIMIT_MAX, &options_of(target)->limit, err);
}

static const struct option_row rows[] = {
    { 'a', "all-users", NULL, "jobs of all users", OPTION_INNER(flag, struct ps_options, is_everybody) },
    { 'u', "user", "USER", "jobs of this user", OPTION_INNER(text, struct ps_options, user) },
    { 's', "state", "LIST", "only these states: queued,held,running,suspended,parked,done,failed,cancelled",
        set_states },
    { 'n', "name", "GLOB", "only jobs whose name matches", OPTION_INNER(text, struct ps_options, name) },
    { 0, "ended", NULL, "include ended jobs of any age", OPTION_INNER(flag, struct ps_options, is_ended) },
    { 0, "elements", NULL, "one row per ended array element, not one for all of them",
        OPTION_INNER(flag, struct ps_options, has_elements) },
    { 0, "limit", "N", "at most N jobs of each state, next in line or newest (200 on a terminal; 0: all)",
        set_limit },
    { 'w', "watch", "[SECONDS]", "refresh at this interval (2)", set_watch },
    { 0 },
};

static void append_filter(struct buffer *path, const char *key, const char *value)
{
    buffer_printf(path, "%s%s=", strchr(buffer_text(path), '?') == NULL ? "?" : "&", key);
    http_append_encoded(path, value);
}

/* If only parts of a state were requested (held jobs, not all queued ones), the others are removed. */
static void drop_other_parts(const char *states, json_t *answer)
{
    json_t *jobs = json_object_get(answer, "jobs");
    if (states == NULL || !job_states_are_parts(states))
        return;
    for (size_t i = json_array_size(jobs); i-- > 0;)
        if (!job_states_have(states, json_array_get(jobs, i)))
            (void)json_array_remove(jobs, i);
}

/* A list that is too long to read is shortened on a terminal; output for programs is complete. */
static void append_limit(const struct call *call, int argc, struct buffer *path)
{
    const struct ps_options *options = call->options;
    bool is_read_by_eye = isatty(STDOUT_FILENO) == 1 && !list_is_machine(call) && call->list.sort == NULL;
    int64_t limit = options->has_limit ? options->limit : is_read_by_eye ? STATE_SHOWN : 0;
    bool is_sifted = options->states != NULL && job_states_are_parts(options->states); // after the limit
    if (argc > 0 || options->is_ended || is_sifted || limit == 0)
        return;
    _cleanup_free_ char *text = xasprintf("%" PRId64, limit);
    append_filter(path, "top", text);
}

/* Output for people has one line for all ended elements of an array. */
static bool is_folded(const struct call *call, int argc)
{
    const struct ps_options *options = call->options;
    return argc == 0 && !options->has_elements && !list_is_machine(call) && !call->list.is_headless;
}

/* Builds the query: the selected jobs, or those that match the filters. */
static int build_path(struct call *call, int argc, char **argv, struct buffer *path, struct strings *named,
    bool *ret_has_user, struct error *err)
{
    const struct ps_options *options = call->options;
    buffer_append_text(path, API_PATH "/jobs");
    *ret_has_user = options->is_everybody || options->user != NULL || argc > 0;
    if (argc > 0) {
        int r = selector_resolve(call, argc, argv, named, err);
        if (r < 0)
            return r;
        buffer_append_text(path, "?all=1&ids=");
        for (size_t i = 0; i < named->count; i++)
            buffer_printf(path, "%s%s", i > 0 ? "," : "", named->items[i]);
    }
    _cleanup_free_ char *own = *ret_has_user ? NULL : selector_own_user();
    const char *user = options->user != NULL ? options->user : options->is_everybody ? NULL : own;
    if (user != NULL)
        append_filter(path, "user", user);
    _cleanup_free_ char *states = options->states == NULL ? NULL : job_states_of_api(options->states);
    if (states != NULL)
        append_filter(path, "state", states);
    if (options->name != NULL)
        append_filter(path, "name", options->name);
    if (argc == 0 && options->is_ended)
        append_filter(path, "all", "1");
    if (!list_is_machine(call))
        append_filter(path, "sparse", "1");
    if (is_folded(call, argc))
        append_filter(path, "fold", "1");
    append_limit(call, argc, path);
    return 0;
}

/* The lines of the screen for jobs: without header, summary, prompt, and lines used by the caller. */
static size_t count_lines(const struct ps_choice *choice)
{
    unsigned height = 0, width = 0;
    if (!screen_size(&height, &width))
        return SIZE_MAX;
    size_t taken = FRAME_LINES + choice->lines;
    return height > taken + LINES_MIN ? height - taken : LINES_MIN;
}

/* Counts an omitted job among those of its state that mgpud has omitted. */
static void count_omitted(json_t *answer, const json_t *job)
{
    const char *state = job_state_shown(job);
    json_t *omitted = json_object_get(answer, "omitted");
    if (!json_is_object(omitted)) {
        omitted = json_object();
        (void)json_object_set_new(answer, "omitted", omitted);
    }
    (void)json_object_set_new(omitted, state, json_integer(field_integer(omitted, state, 0) + 1));
}

static bool is_waiting(const json_t *job)
{
    return field_is(job, "state", "queued") || field_is(job, "state", "held");
}

/* Chooses waiting jobs, or the others that have not ended, until `most` are chosen. */
static void choose(const json_t *jobs, bool are_waiting, size_t most, bool *is_chosen, size_t *count)
{
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        if (job_is_done(job) || is_waiting(job) != are_waiting || *count >= most)
            continue;
        is_chosen[index] = true;
        ++*count;
    }
}

/* For display: jobs that have not ended, then the newest ended ones, newest first; no more than the screen
 * has lines. Returns how many ended ones were omitted. */
static size_t arrange(json_t *answer, const struct ps_choice *choice)
{
    json_t *jobs = json_object_get(answer, "jobs"), *shown = json_array(), *job = NULL;
    size_t lines = count_lines(choice), index = 0, dropped = 0, ended = 0, count = 0;
    _cleanup_free_ bool *is_chosen = xcalloc(json_array_size(jobs) + 1, sizeof(bool));
    size_t most = choice->keeps_active ? SIZE_MAX : lines;
    choose(jobs, false, most, is_chosen, &count);
    choose(jobs, true, most, is_chosen, &count);
    json_array_foreach(jobs, index, job)
    {
        if (is_chosen[index])
            (void)json_array_append(shown, job);
        else if (!job_is_done(job))
            count_omitted(answer, job);
    }
    for (size_t i = json_array_size(jobs); i-- > 0;) {
        job = json_array_get(jobs, i);
        if (!job_is_done(job))
            continue;
        if (ended < ENDED_SHOWN && json_array_size(shown) < lines) {
            (void)json_array_append(shown, job);
            ended++;
        } else {
            dropped++;
        }
    }
    (void)json_object_set_new(answer, "jobs", shown);
    return dropped;
}

/* An empty table does not show whose jobs were requested. */
static bool print_whose(const struct call *call, const json_t *jobs, const struct ps_choice *choice)
{
    if (choice->has_user || json_array_size(jobs) > 0 || isatty(STDERR_FILENO) != 1 || call->is_quiet)
        return false;
    _cleanup_free_ char *own = selector_own_user(), *shown = text_escape(own, NAME_SHOWN_MAX);
    if (choice->is_filtered)
        talk_line("no jobs of %s match; mgpu ps shows the others, -a all users' jobs", shown);
    else
        talk_line("no jobs of %s; mgpu ps -a shows all users' jobs", shown);
    return true;
}

/* "24800 more queued, 1800 more running" */
static void append_omitted(struct buffer *line, json_t *omitted)
{
    const char *state = NULL, *before = "; ";
    json_t *count = NULL;
    json_object_foreach(omitted, state, count)
    {
        buffer_printf(line, "%s%" PRId64 " more %s", before, (int64_t)json_integer_value(count), state);
        before = ", ";
    }
    if (json_object_size(omitted) > 0)
        buffer_append_text(line, ": mgpu ps --limit 0");
}

static void print_summary(const struct screen *screen, json_t *answer, size_t dropped, FILE *out)
{
    const json_t *jobs = json_object_get(answer, "jobs");
    static const char *const states[] = { "running", "starting", "stopping", "queued", "held", "failed",
        "cancelled", "done" };
    _cleanup_buffer_ struct buffer line = { 0 };
    size_t total = json_array_size(jobs), index = 0;
    buffer_printf(&line, "%zu job%s", total, total == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        size_t count = 0;
        json_t *job = NULL;
        json_array_foreach(jobs, index, job) count += strcmp(job_state_shown(job), states[i]) == 0;
        if (count > 0)
            buffer_printf(&line, ", %zu %s", count, states[i]);
    }
    append_omitted(&line, json_object_get(answer, "omitted"));
    if (dropped > 0)
        buffer_printf(&line, "; %zu more ended in the last hour: mgpu ps -s done,failed,cancelled", dropped);
    (void)fputs(screen_color(screen, COLOR_DIM), out);
    wrapped_print(screen, buffer_text(&line), 0, 0, out);
    (void)fputs(screen_color(screen, COLOR_NONE), out);
}

/* With the owner if jobs of several users may be shown; symbols of states are only for display. */
static struct list_kind kind_for(bool has_user, const struct screen *screen)
{
    static const char *const names[2][2] = {
        { "id,name,state,gpus,time,left,where,why", "id,user,name,state,gpus,time,left,where,why" },
        { "mark,id,name,state,gpus,time,left,where,why", "mark,id,user,name,state,gpus,time,left,where,why" },
    };
    return (struct list_kind){
        .member = "jobs",
        .columns = job_columns,
        .normal = names[screen->is_tty][has_user],
        .wide = "id,user,name,state,gpus,time,left,where,why,exit,limit,priority,submitted,started,ended",
    };
}

/* "42.3" while it waits in array 42, whose line stands for it. */
static bool waits_in(const json_t *job, const char *name)
{
    const char *dot = strchr(name, '.'), *left = field_text(job, "array_left");
    _cleanup_free_ char *array = dot != NULL ? xstrndup(name, (size_t)(dot - name)) : NULL;
    _cleanup_free_ char *number = field_shown(job, "id");
    if (array == NULL || left == NULL || strcmp(array, number) != 0)
        return false;
    _cleanup_free_ char *without = array_without(left, (uint32_t)strtoul(dot + 1, NULL, 10));
    return without != NULL;
}

static bool is_listed(const json_t *jobs, const char *name)
{
    size_t i = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, i, job)
    {
        _cleanup_free_ char *element = job_id(job), *number = field_shown(job, "id");
        if (strcmp(element, name) == 0 || strcmp(number, name) == 0 || waits_in(job, name))
            return true;
    }
    return false;
}

/* 0, or the status of other verbs if some of the given jobs do not exist. */
static int report_missing(
    const struct call *call, const struct strings *named, const json_t *jobs, struct error *err)
{
    size_t missing = 0;
    for (size_t i = 0; named != NULL && i < named->count; i++) {
        struct error one = { 0 };
        if (is_listed(jobs, named->items[i]))
            continue;
        (void)error_set(&one, -ENOENT, "there is no job %.40s", named->items[i]);
        (void)client_hint_other(&call->client, &one);
        if (++missing == named->count) {
            *err = one;
            return -ENOENT;
        }
        talk_error(call->command->name, &one);
    }
    return missing > 0 ? EXIT_PARTLY : 0;
}

int ps_show(struct call *call, const char *path, const struct ps_choice *choice, FILE *out, struct error *err)
{
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    screen_open(&screen, STDOUT_FILENO, call->color);
    struct list_kind kind = kind_for(choice->has_user, &screen);
    int r = client_get(&call->client, path, &answer, err);
    if (r < 0)
        return r;
    drop_other_parts(choice->states, answer);
    json_t *jobs = json_object_get(answer, "jobs");
    bool is_plain = screen.is_tty && !list_is_machine(call) && !choice->keeps_ended;
    bool is_printed = !list_is_machine(call) && print_whose(call, jobs, choice);
    if (choice->is_folded)
        ps_describe_arrays(jobs, choice->states);
    int missing = report_missing(call, choice->named, jobs, err);
    if (missing < 0)
        return missing;
    if (is_printed && screen.is_tty && call->list.output == NULL)
        return missing;
    size_t dropped = is_plain ? arrange(answer, choice) : 0;
    if (screen.width > 0 && screen.width < NARROW && !list_is_machine(call))
        why_brief_add(json_object_get(answer, "jobs"));
    r = list_print(call, &kind, &screen, answer, out, err);
    if (r < 0)
        return r;
    bool has_shown = json_array_size(json_object_get(answer, "jobs")) > 0 || dropped > 0;
    if (has_shown && screen.is_tty && call->list.output == NULL && !call->is_json && !call->is_quiet)
        print_summary(&screen, answer, dropped, out);
    return missing;
}

/* Columns allowed for -o and --sort. */
static const struct list_kind every_column = { .member = "jobs", .columns = job_columns };

struct ps_view {
    struct call *call;
    const char *path;
    struct ps_choice choice;
};

static int show(void *arg, FILE *out, struct error *err)
{
    const struct ps_view *view = arg;
    return ps_show(view->call, view->path, &view->choice, out, err);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct ps_options *options = call->options;
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_strings_ struct strings named = { 0 };
    struct ps_view view = { .call = call };
    view.choice = (struct ps_choice){
        .is_filtered = options->states != NULL || options->name != NULL,
        .states = options->states,
        .is_folded = is_folded(call, argc),
        .keeps_ended = argc > 0 || options->states != NULL || options->is_ended || options->name != NULL ||
                       call->list.sort != NULL,
        .keeps_active = options->has_limit,
        .named = argc > 0 ? &named : NULL,
    };
    int r = list_begin(call, &every_column, err);
    if (r != 0)
        return r > 0 ? EXIT_OK : r;
    r = build_path(call, argc, argv, &path, &named, &view.choice.has_user, err);
    if (r < 0)
        return r;
    view.path = buffer_text(&path);
    return options->watch_ms > 0 ? watch_run(call, options->watch_ms, show, &view, err)
                                 : show(&view, stdout, err);
}

const struct command command_ps = {
    .name = "ps",
    .aliases = { "queue", "list", "ls", "squeue" },
    .usage = "[OPTIONS] [JOB...]",
    .help = "List jobs: waiting, running, and ended in the last hour",
    .detail = "Yours, or all users' with -a. Output in a pipe is never cut and has no colour.",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct ps_options),
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .list = &every_column,
    .run = run,
};
