/* SPDX-License-Identifier: MIT */
/* mgpu show: all details of a job for display; -o json prints the object itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/show/enforced.h"
#include "cli/show/job_columns.h"
#include "cli/show/jobs_each.h"
#include "cli/show/node_unreachable_text.h"
#include "cli/show/progress_text.h"
#include "cli/show/ps_arrays.h"
#include "cli/show/show_page.h"
#include "cli/show/usage_text.h"
#include "cli/show/why_text.h"
#include "cli/submit/setup_text.h"
#include "cli/verbs/verbs.h"

struct show_options {
    bool has_env, is_script;
};

static int set_output(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    if (strcmp(value, "json") != 0)
        return error_set(err, -EINVAL, "-o: '%.40s' is not supported, only json", value);
    call->is_json = true;
    return 0;
}

static const struct option_row rows[] = {
    { 'o', "output", "json", "the server's JSON", set_output },
    { 'E', "env", NULL, "include the environment of the job",
        OPTION_INNER(flag, struct show_options, has_env) },
    { 0, "script", NULL, "print only the submitted script",
        OPTION_INNER(flag, struct show_options, is_script) },
    { 0 },
};

static void print_field(const struct page *page, const char *label, const char *name)
{
    if (!field_is_known(page->job, name))
        return;
    _cleanup_free_ char *text = field_shown(page->job, name);
    show_print_line(page, label, text);
}

/* Only the first line of a text generated for --conda etc., which describes it. */
static void print_setup(const struct page *page)
{
    const char *setup = field_text(page->job, "setup");
    size_t length = strlen(SETUP_TEXT_MARK);
    if (setup == NULL || strncmp(setup, SETUP_TEXT_MARK, length) != 0) {
        print_field(page, "setup", "setup");
        return;
    }
    _cleanup_free_ char *line = xstrndup(setup + length, strcspn(setup + length, "\n"));
    _cleanup_free_ char *shown = text_escape(line, WORD_MAX);
    show_print_copied(page, "setup", shown);
}

static void print_image(const struct page *page)
{
    size_t index = 0;
    json_t *mount = NULL;
    print_field(page, "image", "image");
    json_array_foreach(json_object_get(page->job, "image_mounts"), index, mount)
    {
        _cleanup_free_ char *shown = text_escape(json_string_value(mount), WORD_MAX);
        show_print_line(page, "mount", shown);
    }
    print_field(page, "runtime", "image_runtime");
}

static void print_size(const struct page *page, const char *label, const char *name)
{
    char text[32];
    if (!field_is_known(page->job, name))
        return;
    format_size((uint64_t)field_integer(page->job, name, 0), text, sizeof(text));
    show_print_line(page, label, text);
}

/* What mgpu can and cannot do for a process that it did not start. */
static void print_adopted(const struct page *page)
{
    if (!field_is_known(page->job, "adopted_pid"))
        return;
    (void)fprintf(page->out,
        "%-10s process %" PRId64 ", started outside mgpu: its GPUs are reserved until it ends\n"
        "%-10s not confined, output not collected, no exit status; cancel releases it, cancel --kill ends "
        "it\n",
        "adopted", field_integer(page->job, "adopted_pid", 0), "");
}

/* The command as it would be typed if the server provides it, else the form that all users may see. */
static void print_command(const struct page *page)
{
    const json_t *words = json_object_get(page->job, "argv");
    _cleanup_strings_ struct strings command = { 0 };
    size_t index = 0;
    json_t *word = NULL;
    if (!json_is_array(words)) {
        print_field(page, "command", "command");
        return;
    }
    json_array_foreach(words, index, word)
        strings_add(&command, json_is_string(word) ? json_string_value(word) : "");
    _cleanup_free_ char *line = text_quote_command(&command);
    _cleanup_free_ char *shown = text_escape(line, WORD_MAX);
    show_print_copied(page, "command", shown);
}

static void append_span_of(struct buffer *out, const json_t *job, const char *name, const char *words)
{
    char text[32];
    if (field_number(job, name, 0) <= 0)
        return;
    format_duration((int64_t)(field_number(job, name, 0) * 1000), text, sizeof(text));
    buffer_printf(out, "%s%s", words, text);
}

static void append_text_of(struct buffer *out, const json_t *job, const char *name, const char *label)
{
    if (!field_is_known(job, name))
        return;
    _cleanup_free_ char *text = field_shown(job, name);
    buffer_printf(out, "%s%s", label, text);
}

/* What happens to its attempts. */
static void append_flags(struct buffer *out, const json_t *job)
{
    static const struct {
        const char *name, *words;
    } flags[] = {
        { "checkpoint", "checkpoints on request" },
        { "requeue_on_timeout", "requeued at the time limit" },
        { "park_on_timeout", "parked at the time limit" },
        { "park_on_preempt", "parked when it is preempted" },
        { "park_anywhere", "returns on other GPUs if parked" },
        { "no_park", "never parked" },
        { "no_restart", "never on GPUs owed to a parked job" },
        { "requeue_on_node_lost", "requeued if the node is lost" },
        { "preemptible", "preemptible" },
        { "idle_ok", "exempt from idle handling" },
        { "cancel_if_never", "ended if its dependency can never be satisfied" },
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (json_is_true(json_object_get(job, flags[i].name)))
            buffer_printf(out, ", %s", flags[i].words);
}

static void print_request(const struct page *page)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int64_t retries = field_integer(page->job, "retry", 0);
    _cleanup_free_ char *request = why_request(page->job);
    buffer_append_text(&text, request);
    append_span_of(&text, page->job, "time_limit_s", ", at most ");
    append_text_of(&text, page->job, "warn_signal", ", signal before the limit: ");
    append_span_of(&text, page->job, "grace_s", ", grace ");
    append_flags(&text, page->job);
    if (retries > 0)
        buffer_printf(&text, ", retried up to %" PRId64 " time%s", retries, retries == 1 ? "" : "s");
    append_text_of(&text, page->job, "retry_on", ", also after exit ");
    append_text_of(&text, page->job, "share", ", share enforced by: ");
    append_text_of(&text, page->job, "retry_oom", ", with more GPU memory if it runs out: ");
    buffer_printf(&text, ", priority %" PRId64, field_integer(page->job, "priority", 0));
    if (json_is_true(json_object_get(page->job, "own_priority")))
        buffer_append_text(&text, " among its owner's jobs");
    append_span_of(&text, page->job, "idle_timeout_s", ", ended if its GPUs are unused for ");
    append_span_of(&text, page->job, "tty_idle_s", ", ended if its terminal is unused for ");
    if (field_integer(page->job, "log_max", 0) > 0) {
        char most[32];
        format_size((uint64_t)field_integer(page->job, "log_max", 0), most, sizeof(most));
        buffer_printf(&text, ", at most %s of its output kept", most);
    }
    show_print_line(page, "requested", buffer_text(&text));
}

static void print_time(const struct page *page, const char *label, const char *name)
{
    char text[64];
    int64_t when = time_parse(field_text(page->job, name));
    if (when == 0)
        return;
    time_format(when, page->view.now_ms, page->view.times, text, sizeof(text));
    show_print_line(page, label, text);
}

static void print_count(const struct page *page, const char *label, const char *name, const char *more)
{
    int64_t count = field_integer(page->job, name, 0);
    if (count > 0)
        (void)fprintf(page->out, "%-10s %" PRId64 " time%s%s\n", label, count, count == 1 ? "" : "s", more);
}

/* When it was parked, where its GPU memory is, and why it could not be parked or restored. */
static void print_park(const struct page *page)
{
    show_print_parks(page);
    print_time(page, "returns", "return_at");
    if (!field_is_known(page->job, "park_text") || field_is(page->job, "ended_by", "gpu_fault"))
        return; // the state shows it already
    _cleanup_free_ char *why = field_shown(page->job, "park_text");
    show_print_line(page, field_is_known(page->job, "park") ? "not restored" : "not parked", why);
}

/* Attempts after the first, the result of each, and where its output is. */
static void print_tries(const struct page *page)
{
    size_t i = 0;
    const json_t *event = NULL;
    print_count(page, "restarted", "restarts", "");
    print_count(page, "retried", "retries", " of these, because it had failed");
    if (time_parse(field_text(page->job, "retry_at")) > page->view.now_ms) // after that: its turn
        print_time(page, "next try", "retry_at");
    print_time(page, "suspended", "suspended_at");
    print_park(page);
    _cleanup_free_ char *away = node_unreachable_sentence(&page->view, page->job);
    if (away != NULL)
        show_print_line(page, "warning", away);
    json_array_foreach(json_object_get(page->job, "events"), i, event)
    {
        if (!field_is(event, "type", "requeued"))
            continue;
        _cleanup_free_ char *cause = text_escape(field_text(event, "cause"), WORD_MAX);
        _cleanup_free_ char *log =
            field_is_known(event, "log") ? field_shown(event, "log") : xstrdup("no output");
        (void)fprintf(page->out, "%-10s %" PRId64 ": %s, exit %" PRId64 ", %s\n", "attempt",
            field_integer(event, "attempt", 0), cause, field_integer(event, "exit_code", 0), log);
    }
}

/* "250 of 300 ended: 200 done, 50 failed; 12 are separate jobs" */
static void print_elements(const struct page *page)
{
    _cleanup_free_ char *counts = elements_counts(page->job);
    const json_t *elements = json_object_get(page->job, "elements");
    if (!field_is_known(page->job, "elements"))
        return;
    struct buffer text = { 0 };
    buffer_printf(&text, "%" PRId64 " of %" PRId64 " ended%s%s", elements_ended(page->job),
        field_integer(elements, "all", 0), counts != NULL ? ": " : "", counts != NULL ? counts : "");
    if (field_integer(elements, "open", 0) > 0)
        buffer_printf(
            &text, "; %" PRId64 " started or separate, and not ended", field_integer(elements, "open", 0));
    show_print_line(page, "elements", buffer_text(&text));
    buffer_clear(&text);
}

/* Conditions of its start besides resources, and its place in an array. */
static void print_conditions(const struct page *page)
{
    print_field(page, "after", field_is_known(page->job, "after_shown") ? "after_shown" : "after");
    print_time(page, "begin", "begin_at");
    print_time(page, "deadline", "deadline_at");
    print_field(page, "array", "array");
    const char *left = field_text(page->job, "array_left");
    if (left != NULL && left[0] != '\0')
        print_field(page, "not begun", "array_left");
    print_elements(page);
    print_tries(page);
    print_count(page, "preempted", "preemptions", "");
}

static void print_state(const struct page *page)
{
    struct buffer text = { 0 };
    if (job_is_split_up(page->job)) {
        show_print_line(page, "state", "all its elements have started");
        return;
    }
    int64_t position = field_integer(page->job, "position", 0);
    _cleanup_free_ char *state = text_escape(job_state_shown(page->job), WORD_MAX);
    _cleanup_free_ char *outcome = job_outcome(page->job);
    const struct screen *screen = page->view.screen;
    buffer_printf(
        &text, "%s%s%s", screen_color(screen, job_color(page->job)), state, screen_color(screen, COLOR_NONE));
    if (position > 0)
        buffer_printf(&text, ", position %" PRId64, position);
    if (outcome != NULL)
        buffer_printf(&text, ": %s", outcome);
    const char *why = field_is_known(page->job, "reason_text") ? "reason_text" : "reason";
    if (outcome == NULL && page->why == NULL && field_is_known(page->job, why)) {
        _cleanup_free_ char *reason = field_shown(page->job, why);
        buffer_printf(&text, ": %s", reason);
    }
    show_print_line(page, "state", buffer_text(&text));
    buffer_clear(&text);
}

static void append_time(const struct page *page, struct buffer *out, const char *label, const char *name)
{
    char text[64];
    int64_t when = time_parse(field_text(page->job, name));
    if (when == 0)
        return;
    time_format(when, page->view.now_ms, page->view.times, text, sizeof(text));
    buffer_printf(out, "%s%s %s", out->length > 0 ? "  " : "", label, text);
}

static void append_span(const struct page *page, struct buffer *out, const char *label, const char *name)
{
    char text[32];
    if (!field_is_known(page->job, name))
        return;
    format_duration((int64_t)(field_number(page->job, name, 0) * 1000), text, sizeof(text));
    buffer_printf(out, "  %s %s %s", page->view.screen->is_utf8 ? "─" : "-", label, text);
}

static void print_timeline(const struct page *page)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    append_time(page, &text, "submitted", "submitted_at");
    if (!job_is_split_up(page->job))
        append_span(page, &text,
            job_is_done(page->job) || field_is_known(page->job, "started_at") ? "waited" : "waits",
            "wait_seconds");
    append_time(page, &text, "started", "started_at");
    append_span(page, &text, job_is_done(page->job) ? "ran" : "runs", "run_seconds");
    append_span(page, &text, "parked", "parked_seconds");
    append_time(page, &text, "ended", "ended_at");
    show_print_line(page, "timeline", buffer_text(&text));
}

static void print_use(const struct page *page)
{
    char cpu[32], memory[32];
    double seconds = 0, bytes = 0;
    if (!field_measured(page->job, "cpu_seconds", &seconds))
        return;
    format_duration((int64_t)(seconds * 1000), cpu, sizeof(cpu));
    bool has_peak = field_measured(page->job, "max_rss_bytes", &bytes);
    format_size((uint64_t)bytes, memory, sizeof(memory));
    (void)fprintf(page->out, "%-10s %s of CPU time%s%s\n", "used", cpu, has_peak ? ", peak memory " : "",
        has_peak ? memory : "");
}

static void print_reported(const struct page *page)
{
    _cleanup_free_ char *report = progress_sentence(page->view.screen, page->job);
    if (report != NULL)
        show_print_line(page, "reports", report);
    print_time(page, "saved", "checkpointed_at");
}

/* Its resource usage, with remarks. */
static void print_usage(const struct page *page)
{
    const json_t *usage = json_object_get(page->job, "usage");
    _cleanup_free_ char *sentence = usage_sentence(usage), *stray = usage_stray(usage);
    _cleanup_free_ char *idle = job_is_done(page->job) ? NULL : usage_idle(page->job);
    _cleanup_free_ char *idle_gpus = job_is_done(page->job) ? NULL : usage_idle_gpus(page->job);
    _cleanup_free_ char *share = usage_share(usage);
    _cleanup_free_ char *excess = job_is_done(page->job) ? NULL : usage_excess(usage);
    if (sentence != NULL)
        show_print_line(page, "GPUs", sentence);
    if (share != NULL)
        show_print_line(page, "share", share);
    if (excess != NULL)
        show_print_line(page, "warning", excess);
    if (field_is_known(usage, "fault"))
        print_field(&(struct page){ .job = usage, .view = page->view, .out = page->out }, "fault", "fault");
    if (stray != NULL)
        show_print_line(page, "warning", stray);
    if (idle != NULL)
        show_print_line(page, "warning", idle);
    if (idle_gpus != NULL)
        show_print_line(page, "warning", idle_gpus);
    usage_print_timeline(page->view.screen, usage, page->out);
}

/* Current viewers of its terminal; the owner must see them. */
static void print_viewers(const struct page *page)
{
    const json_t *viewers = json_object_get(page->job, "viewers"), *viewer;
    size_t i;
    _cleanup_buffer_ struct buffer text = { 0 };
    json_array_foreach(viewers, i, viewer)
    {
        _cleanup_free_ char *user = field_shown(viewer, "user");
        bool is_read_only = json_is_true(json_object_get(viewer, "read_only"));
        buffer_printf(&text, "%s%s%s", i > 0 ? ", " : "", user, is_read_only ? " (read-only)" : "");
    }
    if (json_is_true(json_object_get(page->job, "tty")))
        show_print_line(page, "terminal", text.length > 0 ? buffer_text(&text) : "no viewers");
}

/* For a job on several nodes: each node, the result there, and where its output is. */
static void print_ranks(const struct page *page)
{
    size_t rank = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(page->job, "ranks"), rank, one)
    {
        _cleanup_free_ char *node = field_shown(one, "node"), *state = field_shown(one, "state");
        _cleanup_free_ char *log =
            field_is_known(one, "log") ? field_shown(one, "log") : xstrdup("no output");
        (void)fprintf(page->out, "%-10s %zu: %s, %s", rank == 0 ? "ranks" : "", rank, node, state);
        if (field_is_known(one, "exit_code"))
            (void)fprintf(page->out, ", exit %" PRId64, field_integer(one, "exit_code", 0));
        (void)fprintf(page->out, ", %s\n", log);
    }
}

static void print_grants(const struct page *page)
{
    size_t index = 0;
    json_t *gpu = NULL;
    _cleanup_free_ char *where = job_where(page->job);
    bool is_wide = json_array_size(json_object_get(page->job, "ranks")) > 1;
    if (!field_is_known(page->job, "node"))
        return;
    show_print_line(page, "where", where);
    print_ranks(page);
    json_array_foreach(json_object_get(page->job, "granted"), index, gpu)
    {
        _cleanup_free_ char *uuid = field_shown(gpu, "uuid");
        bool is_shared = json_is_true(json_object_get(gpu, "shared"));
        bool is_here = !field_is_known(gpu, "node"); // true on the first of its nodes
        _cleanup_free_ char *node = field_shown(is_here ? page->job : gpu, "node");
        (void)fprintf(page->out, "%-10s %s%sGPU %" PRId64 "  %s%s\n", "", is_wide ? node : "",
            is_wide ? " " : "", field_integer(gpu, "index", 0), uuid, is_shared ? "  shared" : "");
    }
}

static void print_env(const struct page *page)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_t *env = json_object_get(page->job, "env");
    if (!json_is_object(env))
        return;
    (void)fputs("environment\n", page->out);
    json_object_foreach(env, name, value)
    {
        _cleanup_free_ char *shown = text_escape(name, WORD_MAX), *text = field_shown(env, name);
        (void)fprintf(page->out, "  %s=%s\n", shown, text);
    }
}

static void print_page(const struct page *page, bool has_env)
{
    _cleanup_free_ char *name = field_shown(page->job, "name"), *user = field_shown(page->job, "user");
    _cleanup_free_ char *id = job_id(page->job);
    (void)fprintf(page->out, "%sjob %s%s  %s, of %s\n", screen_color(page->view.screen, COLOR_BOLD), id,
        screen_color(page->view.screen, COLOR_NONE), name, user);
    print_state(page);
    if (page->why != NULL)
        why_print_reasons(&page->view, page->why, page->out);
    print_command(page);
    print_adopted(page);
    print_request(page);
    print_conditions(page);
    print_grants(page);
    if (page->unenforced != NULL)
        show_print_line(page, "warning", page->unenforced);
    print_viewers(page);
    print_timeline(page);
    print_use(page);
    print_reported(page);
    print_usage(page);
    print_field(page, "directory", "cwd");
    print_field(page, "else in", "cwd_fallback");
    print_setup(page);
    print_image(page);
    show_print_logs(page);
    print_size(page, "log size", "log_bytes");
    show_print_notifications(page);
    show_print_steps(page);
    show_print_events(page);
    if (has_env)
        print_env(page);
}

/* The page is useful without them. */
static json_t *ask_steps(struct call *call, const char *id, const json_t *job)
{
    json_t *answer = NULL;
    struct error err;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/steps", id);
    if (field_is_known(job, "started_at") || field_integer(job, "attempt", 0) > 1)
        (void)client_get(&call->client, path, &answer, &err);
    return answer;
}

struct showing {
    struct screen screen;
    bool is_next; // something was printed before
};

/* Why it waits; if it has started between the two requests, there is no reason. */
static json_t *ask_why(struct call *call, const char *id, const json_t *job)
{
    json_t *why = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/why", id);
    if (field_is(job, "state", "queued") && !job_is_split_up(job))
        (void)client_get(&call->client, path, &why, NULL);
    return why;
}

/* The caller frees it. */
static char *ask_unenforced(struct call *call, const json_t *job)
{
    _cleanup_json_ json_t *nodes = NULL;
    if (!enforced_is_asked(job) || client_get(&call->client, API_PATH "/nodes", &nodes, NULL) < 0)
        return NULL;
    return enforced_warning(job, json_object_get(nodes, "nodes"));
}

/* Unchanged, for a file or a pipe. */
static int show_script(struct call *call, const char *id, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s?script=1", id);
    int r = client_get(&call->client, path, &job, err);
    if (r < 0)
        return r;
    const char *text = field_text(job, "script");
    if (text != NULL)
        return fputs(text, stdout) < 0 ? error_set_errno(err, -errno, "cannot print the script") : 0;
    if (json_object_get(job, "argv") == NULL)
        return error_set(err, -EPERM, "the script of job %s can only be read by its owner", id);
    (void)error_set(err, -ENOENT, "job %s has no submitted script", id);
    return error_hint(err, "mgpu show %s shows its command", id);
}

static int show(struct call *call, const char *id, void *arg, struct error *err)
{
    struct showing *showing = arg;
    const struct show_options *options = call->options;
    if (options->is_script && !call->is_json)
        return show_script(call, id, err);
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s%s", id, options->is_script ? "?script=1" : "");
    int r = client_get(&call->client, path, &job, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_page(job, stdout);
        return 0;
    }
    if (showing->is_next)
        (void)fputc('\n', stdout);
    showing->is_next = true;
    _cleanup_json_ json_t *why = ask_why(call, id, job);
    _cleanup_json_ json_t *answer = ask_steps(call, id, job);
    _cleanup_free_ char *unenforced = ask_unenforced(call, job);
    struct page page = {
        .job = job,
        .why = why,
        .steps = json_object_get(answer, "steps"),
        .unenforced = unenforced,
        .view = { .screen = &showing->screen, .times = call->times, .now_ms = clock_wall_ms() },
        .out = stdout,
    };
    print_page(&page, options->has_env);
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct showing showing = { 0 };
    _cleanup_strings_ struct strings jobs = { 0 };
    int r = selector_resolve(call, argc, argv, &jobs, err);
    if (r < 0)
        return r;
    screen_open(&showing.screen, STDOUT_FILENO, call->color);
    return jobs_each(call, &jobs, show, &showing);
}

const struct command command_show = {
    .name = "show",
    .aliases = { "describe" },
    .usage = "[OPTIONS] JOB...",
    .help = "Show all details of jobs: request, timeline, events, result",
    .tables = { rows },
    .options_size = sizeof(struct show_options),
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .run = run,
};
