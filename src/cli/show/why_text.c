/* SPDX-License-Identifier: MIT */
/*
 * The sentences are mgpud's; this file numbers them, converts times to the reader's time zone, and always
 * shows what a forecast is based on.
 */
#include "cli/show/why_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/options/ask.h"
#include "cli/show/job_columns.h"
#include "cli/show/node_unreachable_text.h"
#include "cli/show/park_text.h"
#include "cli/term/table.h"
#include "cli/term/wrapped.h"
#include "job/why_code.h"

#define AHEAD_SHOWN 8U  // number of earlier jobs that are listed
#define LABEL_END   19U // column at which the sentence of a reason begins

/* Commands that remove the reason, before and after the job's number: "mgpu edit" 42 " after=". */
static const struct {
    const char *command, *change;
} remedies[WHY_CODES] = {
    [WHY_DEPENDENCY_NEVER] = { "mgpu edit", " after=" },
    [WHY_BEGIN_TIME] = { "mgpu edit", " begin=" },
    [WHY_HELD_USER] = { "mgpu release", "" },
};

void why_print_codes(FILE *out)
{
    for (unsigned code = 0; code < WHY_CODES; code++)
        (void)fprintf(
            out, "  %-18s %s\n", why_code_name((enum why_code)code), why_code_meaning((enum why_code)code));
}

/* A newer mgpud may have more codes, which are shown unchanged. */
static char *label_of(const json_t *reason)
{
    enum why_code code = why_code_find(field_text(reason, "code"));
    return code < WHY_CODES ? xstrdup(why_code_title(code)) : field_shown(reason, "code");
}

/* The time in that member, or "" if there is none. */
static const char *moment(
    const struct view *view, const json_t *object, const char *name, char *text, size_t size)
{
    int64_t when = time_parse(field_text(object, name));
    text[0] = '\0';
    if (when > 0)
        time_format_short(when, view->now_ms, view->times, text, size);
    return text;
}

static void append_count(struct buffer *out, int64_t count, const char *one)
{
    buffer_printf(out, "%" PRId64 " %s%s", count, one, count == 1 ? "" : "s");
}

static void append_size(struct buffer *out, const json_t *job, const char *name, const char *after)
{
    char text[32];
    if (field_integer(job, name, 0) <= 0)
        return;
    format_size((uint64_t)field_integer(job, name, 0), text, sizeof(text));
    buffer_printf(out, ", %s %s", text, after);
}

static void append_text(
    struct buffer *out, const json_t *job, const char *name, const char *format_before, const char *after)
{
    if (field_text(job, name) == NULL)
        return;
    _cleanup_free_ char *text = field_shown(job, name);
    buffer_printf(out, "%s%s%s", format_before, text, after);
}

char *why_request(const json_t *job)
{
    struct buffer out = { 0 };
    double share = job_gpu_share(job);
    if (share > 0)
        buffer_printf(&out, "%g of a GPU", share);
    else if (field_integer(job, "gpus", 0) == 0)
        buffer_append_text(&out, "no GPU");
    else
        append_count(&out, field_integer(job, "gpus", 0), "GPU");
    append_text(&out, job, "gpu_model", " (", ")");
    append_text(&out, job, "gpu_ids", ", exactly ", "");
    append_text(&out, job, "gpu_allow", ", only of ", "");
    append_size(&out, job, "gpu_mem", "of memory on each");
    if (field_integer(job, "nodes", 0) > 0) {
        buffer_append_text(&out, ", ");
        append_count(&out, field_integer(job, "nodes", 0), "node");
    }
    int64_t each = field_integer(job, "gpus_per_node", 0);
    if (each > 0 && each < field_integer(job, "gpus", 0))
        buffer_printf(&out, ", %" PRId64 " on each node", each);
    else if (each > 0)
        buffer_append_text(&out, ", on one node");
    if (field_number(job, "cpus", 0) > 0)
        buffer_printf(
            &out, ", %g CPU%s", field_number(job, "cpus", 0), field_number(job, "cpus", 0) == 1 ? "" : "s");
    append_size(&out, job, "memory", "of host memory");
    return buffer_take(&out);
}

static void print_reason(const struct view *view, const json_t *reason, size_t number, FILE *out)
{
    char until[64];
    _cleanup_free_ char *label = label_of(reason), *text = field_shown(reason, "text");
    (void)moment(view, reason, "until", until, sizeof(until));
    _cleanup_free_ char *sentence = xasprintf("  %s%s%s", text, until[0] == '\0' ? "" : ", until ", until);
    (void)fprintf(out, "  %zu. %s%-12s%s", number, screen_color(view->screen, COLOR_YELLOW), label,
        screen_color(view->screen, COLOR_NONE));
    wrapped_print(view->screen, sentence, LABEL_END - 2, LABEL_END, out);
}

/* Allocated or requested GPUs: "2 GPUs", "0.5 GPU". */
static char *gpus_text(const json_t *job)
{
    double share = job_gpu_share(job);
    _cleanup_free_ char *count = share > 0 ? xasprintf("%g", share) : field_shown(job, "gpus");
    bool is_one = share > 0 || strcmp(count, "1") == 0;
    return xasprintf("%s GPU%s", count, is_one ? "" : "s");
}

static void add_ahead(struct table *table, const struct view *view, const json_t *job)
{
    char starts[64], ends[64];
    (void)moment(view, job, "eta", starts, sizeof(starts));
    (void)moment(view, job, "ends", ends, sizeof(ends));
    _cleanup_free_ char *id = job_id(job);
    table_add(table, xasprintf("  %s", id), COLOR_NONE);
    table_add(table, field_shown(job, "user"), COLOR_NONE);
    table_add(table, field_shown(job, "name"), COLOR_NONE);
    table_add(table, gpus_text(job), COLOR_NONE);
    table_add(table,
        xasprintf("%s%s",
            starts[0] != '\0' ? "starts about "
            : ends[0] != '\0' ? "ends about "
                              : "",
            starts[0] != '\0' ? starts : ends),
        COLOR_NONE);
}

static void print_ahead(const struct view *view, const json_t *ahead, FILE *out)
{
    static const struct table_column columns[] = { { "", true, 0 }, { "", false, 0 }, { "", false, 1 },
        { "", false, 0 }, { "", false, 0 } };
    size_t index = 0, count = json_array_size(ahead);
    json_t *job = NULL;
    if (count == 0)
        return;
    _cleanup_(table_freep) struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
    json_array_foreach(ahead, index, job) if (index < AHEAD_SHOWN) add_ahead(table, view, job);
    (void)fputs("Ahead of it:\n", out);
    table_print(table, view->screen, false, out);
    if (count > AHEAD_SHOWN)
        (void)fprintf(out, "  and %zu more: mgpu ps -a\n", count - AHEAD_SHOWN);
}

/* " (BASIS)", or nothing. */
static char *basis_of(const json_t *why, const char *name)
{
    if (field_text(why, name) == NULL)
        return xstrdup("");
    _cleanup_free_ char *text = field_shown(why, name);
    return xasprintf(" (%s)", text);
}

/* "between 13:50 and 16:20 (8 of 10 such jobs), ", or nothing if it is practically certain. */
static char *interval_text(const struct view *view, const json_t *why)
{
    char from[64], until[64];
    bool is_known = moment(view, why, "eta_from", from, sizeof(from))[0] != '\0' &&
                    moment(view, why, "eta_until", until, sizeof(until))[0] != '\0';
    return is_known && strcmp(from, until) != 0
               ? xasprintf("between %s and %s (8 of 10 such jobs), ", from, until)
               : xstrdup("");
}

/* "; at the latest 15:40 (BASIS)", or why that time is unknown. */
static char *latest_text(const struct view *view, const json_t *why)
{
    char latest[64];
    if (moment(view, why, "eta_latest", latest, sizeof(latest))[0] != '\0') {
        _cleanup_free_ char *basis = basis_of(why, "eta_latest_basis");
        return xasprintf("; at the latest %s%s", latest, basis);
    }
    if (field_text(why, "eta_latest_basis") == NULL)
        return xstrdup("");
    _cleanup_free_ char *cause = field_shown(why, "eta_latest_basis");
    return xasprintf("; the latest start is %s", cause);
}

/* " Jobs submitted after 15:40 are placed behind it ...", or nothing if there is no such bound. */
static char *bound_text(const struct view *view, const json_t *why)
{
    static const char unless[] = "unless their priority is higher";
    char until[64], promised[64];
    bool is_bound = moment(view, why, "overtaken_until", until, sizeof(until))[0] != '\0';
    bool is_promised = moment(view, why, "promised_until", promised, sizeof(promised))[0] != '\0';
    _cleanup_free_ char *basis = basis_of(why, "promise_basis");
    const char *shown = view->is_verbose ? basis : "";
    if (is_promised && is_bound && view->is_verbose && strcmp(until, promised) != 0)
        return xasprintf(" Jobs submitted after %s are placed behind it as expected now, and those submitted "
                         "after %s%s in any case, %s.",
            until, promised, shown, unless);
    if (is_promised)
        return xasprintf(" Jobs submitted after %s%s are placed behind it, %s.", promised, shown, unless);
    if (is_bound)
        return xasprintf(" Jobs submitted after %s are placed behind it as expected now, %s.", until, unless);
    return xstrdup("");
}

static void print_forecast(const struct view *view, const json_t *why, FILE *out)
{
    char eta[64];
    if (json_is_true(json_object_get(why, "starts_now")))
        return;
    _cleanup_free_ char *basis = basis_of(why, "eta_basis"), *latest = latest_text(view, why);
    bool is_known = moment(view, why, "eta", eta, sizeof(eta))[0] != '\0';
    _cleanup_free_ char *bound = bound_text(view, why);
    _cleanup_free_ char *interval = interval_text(view, why);
    _cleanup_free_ char *line =
        is_known ? xasprintf("Starts %sabout %s%s%s.%s", interval, eta, basis, latest, bound)
                 : xasprintf("Its start cannot be predicted%s.%s", basis, bound);
    wrapped_print(view->screen, line, 0, 2, out);
}

/* "mgpu edit 42 gpus=1" for the change that would start it. */
static void append_edit(struct buffer *line, const json_t *why, json_t *edit)
{
    _cleanup_strings_ struct strings words = { 0 };
    const char *key = NULL;
    json_t *value = NULL;
    _cleanup_free_ char *id = field_shown(why, "job");
    if (!json_is_object(edit) || json_object_size(edit) == 0 || strcmp(id, "-") == 0)
        return;
    strings_add(&words, "mgpu");
    strings_add(&words, "edit");
    strings_add(&words, id);
    json_object_foreach(edit, key, value)
    {
        _cleanup_free_ char *text = json_is_null(value) ? xstrdup("none") : ask_text(key, edit);
        strings_take(&words, xasprintf("%s=%s", key, text));
    }
    _cleanup_free_ char *typed = text_quote_command(&words);
    _cleanup_free_ char *shown = text_escape(typed, 1024);
    buffer_printf(line, " · %s", shown);
}

/* "Parking: ...": a sentence of its own, if there is one. */
static void print_note(
    const struct view *view, const char *label, const json_t *object, const char *name, FILE *out)
{
    if (field_text(object, name) == NULL)
        return;
    _cleanup_free_ char *text = field_shown(object, name);
    _cleanup_free_ char *line = xasprintf("%s: %s.", label, text);
    wrapped_print(view->screen, line, 0, 2, out);
}

static void print_change(const struct view *view, const json_t *why, FILE *out)
{
    const json_t *change = json_object_get(why, "change");
    _cleanup_buffer_ struct buffer line = { 0 };
    if (field_text(change, "text") == NULL)
        return;
    _cleanup_free_ char *text = field_shown(change, "text");
    buffer_printf(&line, "To start now: %s", text);
    append_edit(&line, why, json_object_get(change, "edit"));
    wrapped_print(view->screen, buffer_text(&line), 0, 2, out);
}

/* The commands that remove reasons which no event will: "To let it start: mgpu release 42". */
static void print_commands(const struct view *view, const json_t *why, FILE *out)
{
    _cleanup_buffer_ struct buffer line = { 0 };
    _cleanup_free_ char *id = field_shown(why, "job");
    size_t index = 0;
    json_t *reason = NULL;
    if (!field_is_known(why, "job"))
        return;
    json_array_foreach(json_object_get(why, "reasons"), index, reason)
    {
        enum why_code code = why_code_find(field_text(reason, "code"));
        if (code < WHY_CODES && remedies[code].command != NULL)
            buffer_printf(&line, "%s%s %s%s", line.length == 0 ? "To let it start: " : " · ",
                remedies[code].command, id, remedies[code].change);
    }
    if (line.length > 0)
        wrapped_print(view->screen, buffer_text(&line), 0, 2, out);
}

/* External processes that do not keep jobs away; shown for information. */
static void print_external(const struct view *view, const json_t *external, FILE *out)
{
    size_t index = 0;
    json_t *process = NULL;
    json_array_foreach(external, index, process)
    {
        _cleanup_free_ char *gpu = field_shown(process, "gpu"), *text = field_shown(process, "text");
        _cleanup_free_ char *policy = field_shown(process, "policy");
        _cleanup_free_ char *line =
            xasprintf("External processes that do not block jobs: %s (%s), policy %s.", gpu, text, policy);
        wrapped_print(view->screen, line, 0, 2, out);
    }
}

void why_print_reasons(const struct view *view, const json_t *why, FILE *out)
{
    size_t index = 0;
    json_t *reason = NULL;
    json_array_foreach(json_object_get(why, "reasons"), index, reason)
        print_reason(view, reason, index + 1, out);
    print_ahead(view, json_object_get(why, "ahead"), out);
    print_forecast(view, why, out);
    print_note(view, "Parking", json_object_get(why, "parking"), "text", out);
    print_note(view, "Borrowing", why, "borrowing", out);
    print_change(view, why, out);
    print_commands(view, why, out);
    print_external(view, json_object_get(why, "external"), out);
}

/* "Job 42 (train) has waited 5m for 2 GPUs". */
static char *situation(const json_t *job)
{
    char waited[32];
    if (job == NULL)
        return xstrdup("It would wait");
    _cleanup_free_ char *name = field_shown(job, "name"), *id = job_id(job);
    _cleanup_free_ char *request = why_request(job);
    format_duration((int64_t)(field_number(job, "wait_seconds", 0) * 1000), waited, sizeof(waited));
    bool has_gpus = field_integer(job, "gpus", 0) > 0;
    return xasprintf("Job %s (%s) has waited %s%s%s%s", id, name, waited, has_gpus ? " for " : " (", request,
        has_gpus ? "" : " requested)");
}

static void print_loan(const struct view *view, const json_t *job, FILE *out)
{
    _cleanup_free_ char *due = park_due_text(view, job), *lent = park_lent_text(job);
    if (due != NULL)
        (void)fprintf(out, "Its GPUs are %s.\n", due);
    if (lent != NULL)
        (void)fprintf(out, "Its GPUs are %s.\n", lent);
}

/* For the rule that short jobs go first: for which job it is parked and until when, or which job is parked
 * for it. */
static void print_parks(const struct view *view, const json_t *job, FILE *out)
{
    double guest = 0, host = 0;
    char until[64];
    int64_t until_ms =
        field_is_known(job, "latest_return") ? time_parse(field_text(job, "latest_return")) : 0;
    if (field_measured(job, "park_guest", &guest))
        (void)fprintf(out, "It makes room for job %.0f, which will probably end much sooner.\n", guest);
    else if (field_is(job, "park_cause", "due"))
        (void)fprintf(out, "Its GPUs were due to a job that had been parked for it.\n");
    if (until_ms != 0) {
        time_format(until_ms, view->now_ms, view->times, until, sizeof(until));
        (void)fprintf(out, "It has GPUs again by %s at the latest.\n", until);
    }
    if (field_measured(job, "park_host", &host))
        (void)fprintf(out, "Job %.0f is parked for it.\n", host);
    print_loan(view, job, out);
}

/* For a job that is no longer waiting: where it is or how it ended. */
static void print_past(const struct view *view, const json_t *job, FILE *out)
{
    _cleanup_free_ char *name = field_shown(job, "name"), *state = field_shown(job, "state");
    _cleanup_free_ char *where = job_where(job), *outcome = job_outcome(job), *id = job_id(job);
    _cleanup_free_ char *waits_for =
        field_is_known(job, "reason_text") ? field_shown(job, "reason_text") : NULL;
    _cleanup_free_ char *park = field_is_known(job, "park") ? field_shown(job, "park") : NULL;
    bool waits = text_equal(park, "waiting");
    bool is_early = text_equal(park, "early");
    if (job_is_done(job))
        (void)fprintf(out, "Job %s (%s) has ended: %s.\n", id, name, outcome == NULL ? state : outcome);
    else if (is_early)
        (void)fprintf(out,
            "Job %s (%s) is starting early on %s: it runs on the CPU and waits for its GPUs%s%s.\n", id, name,
            where, waits_for != NULL ? ": " : "", waits_for != NULL ? waits_for : "");
    else if (waits || text_equal(park, "parked"))
        (void)fprintf(out, "Job %s (%s) is parked on %s%s%s%s.\n", id, name, where,
            waits ? " and waits to return" : "", waits_for != NULL ? ": " : "",
            waits_for != NULL ? waits_for : "");
    else
        (void)fprintf(out, "Job %s (%s) is not waiting: it is %s on %s%s%s.\n", id, name, state, where,
            waits_for != NULL ? ", " : "", waits_for != NULL ? waits_for : "");
    print_parks(view, job, out);
    _cleanup_free_ char *away = node_unreachable_sentence(view, job);
    if (away != NULL)
        (void)fprintf(out, "Its %s; it keeps its resources until its end is certain.\n", away);
}

void why_print(const struct view *view, const json_t *job, const json_t *why, FILE *out)
{
    size_t count = json_array_size(json_object_get(why, "reasons"));
    if (job != NULL && job_is_split_up(job)) {
        _cleanup_free_ char *name = field_shown(job, "name"), *id = job_id(job);
        (void)fprintf(out,
            "Job %s (%s) is not waiting: all its elements are separate jobs. See mgpu why %s.INDEX.\n", id,
            name, id);
        return;
    }
    if (job != NULL && !field_is(job, "state", "queued")) {
        print_past(view, job, out);
        return;
    }
    _cleanup_free_ char *start = situation(job);
    if (json_is_true(json_object_get(why, "starts_now")))
        (void)fprintf(out, "%s.\n", job == NULL ? "It would start now" : "It can start now");
    else if (count == 0)
        (void)fprintf(out, "%s.\n", start);
    else if (count == 1)
        (void)fprintf(out, "%s. One thing blocks it:\n", start);
    else
        (void)fprintf(out, "%s. %zu things block it:\n", start, count);
    if (job != NULL)
        print_parks(view, job, out);
    if (job != NULL && field_is_known(job, "early_start")) {
        _cleanup_free_ char *early = field_shown(job, "early_start");
        (void)fprintf(out, "It starts before its GPUs are free: %s.\n", early);
    }
    why_print_reasons(view, why, out);
}
