/* SPDX-License-Identifier: MIT */
/* mgpu cancel: removes waiting jobs from the queue and ends running ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/show/jobs_each.h"
#include "cli/show/node_unreachable_text.h"
#include "cli/verbs/verbs.h"
#include "job/ask.h"

#define LIVE_STATES "queued,starting,running,stopping"
#define ASK_ABOVE   1U // with more jobs than this, a terminal asks for confirmation

struct cancel_options {
    bool has_grace, is_all, is_yes, is_kill;
    int64_t grace_ms;
    const char *user, *name, *states;
};

static struct cancel_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_grace(void *target, const char *value, struct error *err)
{
    struct cancel_options *options = options_of(target);
    int r = parse_duration(value, "--grace", &options->grace_ms, err);
    if (r < 0)
        return r;
    options->has_grace = true;
    return 0;
}

static int set_states(void *target, const char *value, struct error *err)
{
    static const char *const ended[] = { "done", "failed", "cancelled" };
    int r = job_states_check("-s", value, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++) {
        if (!job_states_name(value, ended[i]))
            continue;
        (void)error_set(err, -EINVAL, "-s: '%s' is not the state of an unended job", ended[i]);
        return error_hint(err, "one or more of queued, held, starting, running, suspended, parked, stopping");
    }
    options_of(target)->states = value;
    return 0;
}

static const struct option_row rows[] = {
    { 0, "grace", "TIME", "time between SIGTERM and SIGKILL (the job's, else mgpud's: " ASK_GRACE_DEFAULT ")",
        set_grace },
    { 0, "all", NULL, "all of your jobs that have not ended",
        OPTION_INNER(flag, struct cancel_options, is_all) },
    { 'u', "user", "USER", "jobs of this user (operators)", OPTION_INNER(text, struct cancel_options, user) },
    { 's', "state", "LIST", "your jobs in these states: queued,held,running,suspended", set_states },
    { 'n', "name", "GLOB", "your jobs whose name matches", OPTION_INNER(text, struct cancel_options, name) },
    { 0, "kill", NULL, "also end an adopted process, which is otherwise only released",
        OPTION_INNER(flag, struct cancel_options, is_kill) },
    { 'y', "yes", NULL, "do not ask for confirmation", OPTION_INNER(flag, struct cancel_options, is_yes) },
    { 0 },
};

static void build_filter(const struct cancel_options *options, struct buffer *path)
{
    _cleanup_free_ char *own = options->user == NULL ? selector_own_user() : NULL;
    buffer_append_text(path, API_PATH "/jobs?state=" LIVE_STATES "&user=");
    http_append_encoded(path, options->user != NULL ? options->user : own);
    if (options->name != NULL) {
        buffer_append_text(path, "&name=");
        http_append_encoded(path, options->name);
    }
}

static bool fits(const json_t *job, const struct cancel_options *options)
{
    return options->states == NULL || job_states_have(options->states, job);
}

static bool has_filter(const struct cancel_options *options)
{
    return options->is_all || options->name != NULL || options->user != NULL || options->states != NULL;
}

/* Jobs in the order in which they are cancelled. */
struct chosen {
    struct strings jobs;
    size_t waiting; // the first ones: chosen because they wait, so what runs of them is spared
};

/* Waiting jobs first, and of these the newest before those they may depend on, so that no job starts because
 * another was cancelled. */
static void add_in_order(const json_t *found, const struct cancel_options *options, struct chosen *chosen)
{
    struct strings *jobs = &chosen->jobs;
    for (size_t i = json_array_size(found); i > 0; i--)
        if (field_is(json_array_get(found, i - 1), "state", "queued") &&
            fits(json_array_get(found, i - 1), options))
            strings_take(jobs, field_shown(json_array_get(found, i - 1), "id"));
    if (options->states != NULL && !job_states_name(options->states, "running"))
        chosen->waiting = jobs->count;
    for (size_t i = 0; i < json_array_size(found); i++)
        if (!field_is(json_array_get(found, i), "state", "queued") && fits(json_array_get(found, i), options))
            strings_take(jobs, field_shown(json_array_get(found, i), "id"));
}

static int find_live(struct call *call, struct chosen *chosen, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    build_filter(call->options, &path);
    int r = client_get(&call->client, buffer_text(&path), &answer, err);
    if (r < 0)
        return r;
    add_in_order(json_object_get(answer, "jobs"), call->options, chosen);
    return 0;
}

/* Shows the jobs and asks; any answer other than y means no. */
static bool is_confirmed(const struct strings *jobs)
{
    char line[16] = "";
    (void)fprintf(stderr, "cancel %zu jobs:", jobs->count);
    for (size_t i = 0; i < jobs->count; i++)
        (void)fprintf(stderr, " %s", jobs->items[i]);
    (void)fprintf(stderr, "? [y/N] ");
    return fgets(line, sizeof(line), stdin) != NULL && (line[0] == 'y' || line[0] == 'Y');
}

/* It is worth reporting that a job has not ended yet only if its node is unreachable. */
static void print_result(const struct call *call, const char *id, const json_t *job)
{
    struct view view = { .times = call->times, .now_ms = clock_wall_ms() };
    bool is_stopping = field_is(job, "state", "stopping");
    _cleanup_free_ char *away = is_stopping ? node_unreachable_sentence(&view, job) : NULL;
    if (away != NULL)
        (void)fprintf(stderr, "  job %s ends when its node is back or is fenced: %s\n", id, away);
    else if (isatty(STDERR_FILENO) == 1)
        (void)fprintf(stderr, "  job %s %s\n", id, is_stopping ? "is stopping" : "is cancelled");
}

/* `arg`: whether only what waits is cancelled. */
static int cancel(struct call *call, const char *id, void *arg, struct error *err)
{
    const struct cancel_options *options = call->options;
    const bool *is_waiting = arg;
    _cleanup_json_ json_t *body = json_object(), *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/cancel", id);
    if (options->has_grace)
        (void)json_object_set_new(body, "grace_s", json_integer((options->grace_ms + 999) / 1000));
    if (options->is_kill)
        (void)json_object_set_new(body, "kill", json_true());
    if (*is_waiting)
        (void)json_object_set_new(body, "waiting", json_true());
    int r = client_call(&call->client, "POST", path, body, &job, err);
    if (r == -EALREADY && has_filter(options))
        return 0; // it has ended meanwhile, for example an element with its array
    if (r < 0)
        return r;
    if (call->is_json)
        show_json_line(job, stdout);
    else if (!call->is_quiet)
        print_result(call, id, job);
    return 0;
}

static int cancel_chosen(struct call *call, const struct chosen *chosen)
{
    const struct strings *jobs = &chosen->jobs;
    const struct strings waiting = { .items = jobs->items, .count = chosen->waiting };
    const struct strings others = { .items = jobs->items + waiting.count,
        .count = jobs->count - waiting.count };
    bool is_waiting = true, is_whole = false;
    int first = waiting.count > 0 ? jobs_each_beside(call, &waiting, cancel, &is_waiting) : EXIT_OK;
    int next = others.count > 0 ? jobs_each_beside(call, &others, cancel, &is_whole) : EXIT_OK;
    return first != EXIT_OK ? first : next;
}

static int check(const struct cancel_options *options, int argc, struct error *err)
{
    if (has_filter(options) && argc > 0)
        return error_set(err, -EINVAL, "jobs and --all, -n, -s or -u cannot be combined");
    if (has_filter(options) && !options->is_yes && isatty(STDIN_FILENO) != 1) {
        (void)error_set(err, -EINVAL, "cannot ask for confirmation: standard input is not a terminal");
        return error_hint(err, "use -y to cancel without confirmation");
    }
    return 0;
}

static int run_chosen(struct call *call, const struct chosen *chosen, struct error *err)
{
    const struct cancel_options *options = call->options;
    if (chosen->jobs.count == 0) {
        if (!call->is_quiet)
            talk_line("no job to cancel");
        return EXIT_OK;
    }
    bool must_ask = !options->is_yes && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
    if (must_ask && chosen->jobs.count > ASK_ABOVE && !is_confirmed(&chosen->jobs))
        return error_set(err, -ECANCELED, "nothing was cancelled");
    return cancel_chosen(call, chosen);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct chosen chosen = { 0 };
    int r = check(call->options, argc, err);
    if (r < 0)
        return r;
    r = has_filter(call->options) ? find_live(call, &chosen, err)
                                  : selector_resolve(call, argc, argv, &chosen.jobs, err);
    if (r == 0)
        r = run_chosen(call, &chosen, err);
    strings_clear(&chosen.jobs);
    return r;
}

const struct command command_cancel = {
    .name = "cancel",
    .aliases = { "kill", "rm", "scancel" },
    .usage = "[OPTIONS] JOB...",
    .help = "Remove jobs from the queue, or end them: SIGTERM, then SIGKILL",
    .tables = { rows },
    .options_size = sizeof(struct cancel_options),
    .takes_jobs = true,
    .job_states = LIVE_STATES ",held",
    .run = run,
};
