/* SPDX-License-Identifier: MIT */
/*
 * The periods in which a job was parked, from its events: `park` has the cause. `parked` without a message is
 * the beginning; with a message, its return was refused and it stays parked. `unparked` is its return. If an
 * attempt ends while it is parked, this ends the period as well.
 */
#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/show/park_text.h"
#include "cli/show/show_page.h"
#include "cli/term/time_text.h"

#define SHOWN_MAX 10U // the latest ones

/* The events are borrowed from the job. */
struct stretch {
    const json_t *cause; // `park`, or `reconciled`, by which a node keeps it parked; NULL: it has no cause
    const json_t *begin; // `parked`
    const json_t *end;   // NULL: it is parked now
};

struct stretches {
    struct stretch latest[SHOWN_MAX]; // index: `count` modulo SHOWN_MAX
    size_t count;
    const json_t *cause; // of a park that has not begun yet
};

static bool ends_attempt(const json_t *event)
{
    static const char *const types[] = { "unparked", "ended", "requeued" };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (field_is(event, "type", types[i]))
            return true;
    return false;
}

static void take_event(struct stretches *all, const json_t *event)
{
    struct stretch *last = all->count > 0 ? &all->latest[(all->count - 1) % SHOWN_MAX] : NULL;
    bool is_parked = last != NULL && last->end == NULL;
    if (field_is(event, "type", "park") || field_is(event, "type", "reconciled"))
        all->cause = event;
    else if (field_is(event, "type", "parked") && !is_parked)
        all->latest[all->count++ % SHOWN_MAX] = (struct stretch){ .cause = all->cause, .begin = event };
    else if (is_parked && ends_attempt(event))
        last->end = event;
}

static void append_cause(struct buffer *out, const json_t *cause)
{
    static const struct {
        const char *name, *words;
    } rows[] = {
        { "preempted", "because other jobs needed its GPUs" },
        { "time_limit", "at its time limit" },
        { "due", "because its GPUs were due to a job parked before" },
    };
    double guest = 0;
    if (cause != NULL && field_is(cause, "type", "reconciled"))
        buffer_append_text(out, ", because its node had parked it");
    for (size_t i = 0; cause != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (field_is(cause, "cause", rows[i].name))
            buffer_printf(out, ", %s", rows[i].words);
    if (cause != NULL && field_measured(cause, "guest", &guest))
        buffer_printf(out, ", for job %.0f, which probably ended sooner", guest);
    if (cause == NULL || !field_is(cause, "cause", "asked") || !field_is_known(cause, "user"))
        return;
    _cleanup_free_ char *user = field_shown(cause, "user");
    buffer_printf(out, ", requested by %s", user);
}

/* Appends an end other than a return. */
static void append_end(struct buffer *out, const json_t *end)
{
    bool is_lost = field_is(end, "type", "unparked") && field_is_known(end, "message");
    if (is_lost)
        buffer_append_text(out, "; its return failed");
    else if (field_is(end, "type", "ended"))
        buffer_append_text(out, "; it ended parked");
    else if (field_is(end, "type", "requeued"))
        buffer_append_text(out, "; it was requeued");
}

static void print_stretch(const struct page *page, const struct stretch *stretch)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    char from[64], to[64], span[32], size[32];
    double bytes = 0;
    int64_t from_ms = time_parse(field_text(stretch->begin, "at"));
    int64_t to_ms = stretch->end != NULL ? time_parse(field_text(stretch->end, "at")) : page->view.now_ms;
    time_format(from_ms, page->view.now_ms, page->view.times, from, sizeof(from));
    time_format(to_ms, page->view.now_ms, page->view.times, to, sizeof(to));
    format_duration(to_ms > from_ms ? to_ms - from_ms : 0, span, sizeof(span));
    if (stretch->end == NULL)
        buffer_printf(&text, "since %s (%s)", from, span);
    else
        buffer_printf(&text, "%s to %s (%s)", from, to, span);
    append_cause(&text, stretch->cause);
    if (stretch->end != NULL && field_measured(stretch->begin, "gpu_bytes", &bytes)) {
        format_size((uint64_t)bytes, size, sizeof(size));
        buffer_printf(&text, ", %s of GPU memory kept", size);
    }
    if (stretch->end != NULL)
        append_end(&text, stretch->end);
    show_print_line(page, "parked", buffer_text(&text));
}

/* How the rule that short jobs go first affects it. */
static void print_rule(const struct page *page)
{
    for (const struct park_fact *fact = park_facts; fact->label != NULL; fact++) {
        _cleanup_free_ char *text = fact->text(&page->view, page->job);
        if (text != NULL)
            show_print_line(page, fact->label, text);
    }
}

/* Where the contents of its GPUs are. */
static void print_saved(const struct page *page)
{
    char size[32];
    double bytes = 0;
    if (!field_measured(page->job, "parked_bytes", &bytes))
        return;
    format_size((uint64_t)bytes, size, sizeof(size));
    _cleanup_free_ char *text = xasprintf("%s of GPU memory are in host memory", size);
    show_print_line(page, "saved", text);
}

void show_print_parks(const struct page *page)
{
    show_print_early(page);
    struct stretches all = { 0 };
    size_t index = 0;
    const json_t *event = NULL;
    json_array_foreach(json_object_get(page->job, "events"), index, event) take_event(&all, event);
    size_t first = all.count > SHOWN_MAX ? all.count - SHOWN_MAX : 0;
    if (first > 0) {
        _cleanup_free_ char *text = xasprintf("%zu times, the latest %u:", all.count, SHOWN_MAX);
        show_print_line(page, "parked", text);
    }
    for (size_t i = first; i < all.count; i++)
        print_stretch(page, &all.latest[i % SHOWN_MAX]);
    print_rule(page);
    print_saved(page);
}
