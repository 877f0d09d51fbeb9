/* SPDX-License-Identifier: MIT */
/* The end of the page of `mgpu show`: logs, notifications and history. */
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/show/show_page.h"
#include "cli/term/wrapped.h"
#include "job/launch.h"

#define EVENT_INDENT 6 // indentation of further lines of an event

void show_print_line(const struct page *page, const char *label, const char *text)
{
    size_t column = (size_t)fprintf(page->out, "%-10s ", label);
    wrapped_print(page->view.screen, text, column, column, page->out);
}

void show_print_copied(const struct page *page, const char *label, const char *text)
{
    (void)fprintf(page->out, "%-10s %s\n", label, text);
}

void show_print_logs(const struct page *page)
{
    const char *log = field_text(page->job, "log");
    _cleanup_free_ char *shown = log == NULL ? NULL : text_escape(log, WORD_MAX);
    _cleanup_free_ char *error_log = NULL;
    if (field_is_known(page->job, "error"))
        error_log = field_shown(page->job, "error");
    else if (shown != NULL && json_is_true(json_object_get(page->job, "split_log")))
        error_log = launch_error_log(shown);
    if (shown != NULL)
        show_print_line(page, "log", shown);
    if (error_log != NULL)
        show_print_line(page, "stderr", error_log);
}

/* "mail:ana@lab of its end: sent 12:04". */
static void print_notification(const struct page *page, const json_t *notice)
{
    char when[64] = "", next[64] = "";
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *to = field_shown(notice, "to"), *event = field_shown(notice, "event"),
                        *state = field_shown(notice, "state");
    int64_t tries = field_integer(notice, "tries", 0);
    int64_t over_ms = time_parse(field_text(notice, "over_at"));
    int64_t next_ms = time_parse(field_text(notice, "next_at"));
    time_format(over_ms, page->view.now_ms, page->view.times, when, sizeof(when));
    time_format(next_ms, page->view.now_ms, page->view.times, next, sizeof(next));
    buffer_printf(&text, "%s (%s): ", to, event);
    if (tries > 0 && next_ms != 0)
        buffer_printf(&text, "failed %" PRId64 " time%s", tries, tries == 1 ? "" : "s");
    else
        buffer_printf(&text, "%s%s%s", state, over_ms != 0 ? " " : "", over_ms != 0 ? when : "");
    if (field_is_known(notice, "error")) {
        _cleanup_free_ char *error = field_shown(notice, "error");
        buffer_printf(&text, ": %s", error);
    }
    if (tries > 0 && next_ms != 0)
        buffer_printf(&text, "; next try %s", next);
    show_print_line(page, "notice", buffer_text(&text));
}

void show_print_notifications(const struct page *page)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(page->job, "notify"), i, item)
    {
        _cleanup_free_ char *shown = text_escape(json_string_value(item), WORD_MAX);
        buffer_printf(&text, "%s%s", i > 0 ? ", " : "", shown);
    }
    if (text.length == 0)
        return;
    _cleanup_free_ char *events =
        field_is_known(page->job, "notify_on") ? field_shown(page->job, "notify_on") : xstrdup("end");
    buffer_printf(&text, " (%s)", events);
    show_print_line(page, "tells", buffer_text(&text));
    json_array_foreach(json_object_get(page->job, "notices"), i, item) print_notification(page, item);
}

static void print_step_usage(const struct page *page, const json_t *step)
{
    char size[32], cpu[32];
    double bytes = 0, seconds = 0;
    if (!field_measured(step, "max_rss_bytes", &bytes) || !field_measured(step, "cpu_seconds", &seconds))
        return;
    format_size((uint64_t)bytes, size, sizeof(size));
    format_duration((int64_t)(seconds * 1000), cpu, sizeof(cpu));
    (void)fprintf(page->out, "; at most %s in a task, %s of CPU time", size, cpu);
}

/* "  12:04  42.0 train: 4 tasks on n[1-2], failed (exit status 3)". */
static void print_step(const struct page *page, const json_t *step)
{
    char when[64];
    size_t index = 0;
    const json_t *node = NULL;
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_free_ char *name = field_shown(step, "name"), *state = field_shown(step, "state");
    int64_t tasks = field_integer(step, "tasks", 0);
    int64_t code = field_integer(step, "exit_code", 0), signal = field_integer(step, "signal", 0);
    json_array_foreach(json_object_get(step, "nodes"), index, node) if (field_text(node, "node") != NULL)
        strings_add(&names, field_text(node, "node"));
    _cleanup_free_ char *list = hostlist_compress(&names);
    _cleanup_free_ char *nodes = text_escape(list, WORD_MAX);
    time_format(
        time_parse(field_text(step, "started_at")), page->view.now_ms, page->view.times, when, sizeof(when));
    (void)fprintf(page->out, "  %s  %" PRId64 ".%" PRId64 " %s: %" PRId64 " task%s on %s, %s", when,
        field_integer(step, "job", 0), field_integer(step, "id", 0), name, tasks, tasks == 1 ? "" : "s",
        nodes, state);
    if (signal != 0)
        (void)fprintf(page->out, " (signal %" PRId64 ")", signal);
    else if (code != 0)
        (void)fprintf(page->out, " (exit status %" PRId64 ")", code);
    else if (field_is(step, "ended_by", "unknown"))
        (void)fprintf(page->out, " (its client disappeared)");
    print_step_usage(page, step);
    (void)fputc('\n', page->out);
}

void show_print_steps(const struct page *page)
{
    size_t index = 0;
    const json_t *step = NULL;
    if (json_array_size(page->steps) == 0)
        return;
    (void)fprintf(page->out, "steps\n");
    json_array_foreach(page->steps, index, step) print_step(page, step);
}

/* Members of an event that its line already shows. */
static bool is_shown_apart(const char *key)
{
    static const char *const apart[] = { "seq", "type", "at", "attempt", "job" };
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
        if (strcmp(key, apart[i]) == 0)
            return true;
    return false;
}

/* True if the attempt is ended for a requeue, but not for a job that needs its GPUs. */
static bool is_requeue(const json_t *event)
{
    return field_is(event, "type", "preempted") && !field_is(event, "cause", "preempted");
}

static void print_event(const struct page *page, json_t *event)
{
    char when[64];
    const char *key = NULL;
    json_t *value = NULL;
    _cleanup_buffer_ struct buffer line = { 0 };
    _cleanup_free_ char *type = is_requeue(event) ? xstrdup("requeue") : field_shown(event, "type");
    time_format(time_parse(field_text(event, "at")), page->view.now_ms, page->view.times, when, sizeof(when));
    buffer_printf(&line, "  %s  %s", when, type);
    if (field_integer(event, "attempt", 0) > 0)
        buffer_printf(&line, " (attempt %" PRId64 ")", field_integer(event, "attempt", 0));
    json_object_foreach(event, key, value)
    {
        if (is_shown_apart(key) || json_is_null(value) || json_is_array(value) || json_is_object(value))
            continue;
        _cleanup_free_ char *name = text_escape(key, WORD_MAX), *text = field_shown(event, key);
        buffer_printf(&line, "  %s=%s", name, text);
    }
    wrapped_print(page->view.screen, buffer_text(&line), 0, EVENT_INDENT, page->out);
}

/* An array has two events for each element: that it became a separate job, and that it ended. */
static bool is_of_elements(const struct page *page, const json_t *event)
{
    return field_is_known(page->job, "array") &&
           (field_is(event, "type", "split") || field_is(event, "type", "member"));
}

void show_print_events(const struct page *page)
{
    size_t index = 0;
    json_t *event = NULL;
    const json_t *events = json_object_get(page->job, "events");
    if (json_array_size(events) == 0)
        return;
    (void)fputs("events\n", page->out);
    size_t of_elements = 0;
    json_array_foreach(events, index, event)
    {
        bool is_hidden = is_of_elements(page, event);
        of_elements += is_hidden;
        if (!is_hidden)
            print_event(page, event);
    }
    if (of_elements > 0)
        (void)fprintf(page->out,
            "  and %zu event%s of its elements: mgpu show %" PRId64 ".INDEX shows each element\n",
            of_elements, of_elements == 1 ? "" : "s", field_integer(page->job, "id", 0));
}
