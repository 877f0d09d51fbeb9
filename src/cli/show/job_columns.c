/* SPDX-License-Identifier: MIT */
/* Symbols and words distinguish the states; colours only repeat them. */
#include "cli/show/job_columns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/show/node_unreachable_text.h"
#include "cli/show/park_text.h"
#include "cli/show/progress_text.h"
#include "cli/show/ps_arrays.h"
#include "cli/show/usage_text.h"
#include "job/array.h"

#define NARROW_TIME 100U // columns; on narrower screens only the state shows that the time is a waiting time
#define TEXT_MAX    1024
#define SHARE_WHOLE 1000.0 // the API's shares are in thousandths

/* The order of lists by state. */
enum rank { RUNNING, BETWEEN, WAITING, HELD, UNKNOWN, DONE };

static const struct {
    const char *state, *glyph, *plain_glyph;
    enum color color;
    enum rank rank;
    const char *api; // the state in the API, of which this one is a part; NULL: the same
} looks[] = {
    { "queued", "◌", "o", COLOR_YELLOW, WAITING },
    { "held", "‖", "=", COLOR_MAGENTA, HELD, "queued" },
    { "starting", "◔", ">", COLOR_GREEN, BETWEEN },
    { "starting early", "◔", ">", COLOR_GREEN, BETWEEN, "running" },
    { "running", "●", "*", COLOR_GREEN, RUNNING },
    { "stopping", "◍", "<", COLOR_YELLOW, BETWEEN },
    { "suspended", "◫", "z", COLOR_MAGENTA, RUNNING, "running" },
    { "parking", "◫", "z", COLOR_MAGENTA, RUNNING, "running" },
    { "parked", "◫", "z", COLOR_MAGENTA, RUNNING, "running" },
    { "unparking", "◫", "z", COLOR_MAGENTA, RUNNING, "running" },
    { "done", "✓", "+", COLOR_DIM, DONE },
    { "failed", "✗", "x", COLOR_RED, DONE },
    { "cancelled", "⊘", "-", COLOR_DIM, DONE },
    { "?", "?", "?", COLOR_NONE, UNKNOWN },
};
#define N_LOOKS (sizeof(looks) / sizeof(looks[0]))

bool job_is_held(const json_t *job)
{
    return field_is(job, "state", "queued") && field_is_known(job, "hold");
}

const char *job_state_shown(const json_t *job)
{
    const char *state = field_text(job, "state");
    if (field_is(job, "state", "running") && field_is_known(job, "park"))
        return field_is(job, "park", "early")       ? "starting early"
               : field_is(job, "park", "saving")    ? "parking"
               : field_is(job, "park", "restoring") ? "unparking"
                                                    : "parked";
    if (field_is(job, "state", "running") && field_is_known(job, "suspended_at"))
        return "suspended";
    return job_is_held(job) ? "held" : state == NULL ? "-" : state;
}

const char *job_state_word(size_t i)
{
    return i + 1 < N_LOOKS ? looks[i].state : NULL; // the last row is for states of a newer mgpud
}

static int check_state(const char *what, const char *word, struct error *err)
{
    const char *names[N_LOOKS] = { NULL };
    for (size_t i = 0; i + 1 < N_LOOKS; i++) {
        names[i] = looks[i].state;
        if (strcmp(word, names[i]) == 0)
            return 0;
    }
    _cleanup_free_ char *shown = text_escape(word, 40);
    const char *near = text_nearest(word, names);
    if (near != NULL)
        return error_set(err, -EINVAL, "%s: no state '%s'. Did you mean '%s'?", what, shown, near);
    (void)error_set(err, -EINVAL, "%s: no state '%s'", what, shown);
    return error_hint(err, "queued, held, starting, running, stopping, done, failed or cancelled");
}

int job_states_check(const char *what, const char *list, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(list);
    char *rest = copy;
    int r = 0;
    for (char *word = NULL; r == 0 && (word = strsep(&rest, ",")) != NULL;)
        r = check_state(what, word, err);
    return r;
}

bool job_states_name(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; *p != '\0'; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
        if (strncmp(p, word, length) == 0 && (p[length] == ',' || p[length] == '\0'))
            return true;
    return false;
}

char *job_states_of_api(const char *list)
{
    struct buffer out = { 0 };
    for (size_t i = 0; i + 1 < N_LOOKS; i++)
        if (job_states_name(list, looks[i].state))
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "",
                looks[i].api != NULL ? looks[i].api : looks[i].state);
    return buffer_take(&out);
}

bool job_states_are_parts(const char *list)
{
    for (size_t i = 0; i + 1 < N_LOOKS; i++)
        if (looks[i].api != NULL && job_states_name(list, looks[i].state))
            return true;
    return false;
}

bool job_states_have(const char *list, const json_t *job)
{
    const char *state = field_text(job, "state");
    return job_states_name(list, state != NULL ? state : "") || job_states_name(list, job_state_shown(job));
}

static size_t look_of(const json_t *job)
{
    const char *state = job_state_shown(job);
    size_t i = 0;
    while (i + 1 < N_LOOKS && strcmp(state, looks[i].state) != 0)
        i++;
    return i;
}

char *job_id(const json_t *job)
{
    int64_t array = field_integer(job, "array_job", 0);
    if (array > 0)
        return xasprintf("%" PRId64 ".%" PRId64, array, field_integer(job, "array_index", 0));
    return field_shown(job, "id");
}

double job_gpu_share(const json_t *job)
{
    return field_number(job, "gpu_share", 0) / SHARE_WHOLE;
}

bool job_is_split_up(const json_t *job)
{
    const char *left = field_text(job, "array_left");
    return left != NULL && left[0] == '\0' && field_is(job, "state", "queued");
}

int job_state_rank(const json_t *job)
{
    return (int)looks[look_of(job)].rank;
}

bool job_is_done(const json_t *job)
{
    return looks[look_of(job)].rank == DONE;
}

enum color job_color(const json_t *job)
{
    return looks[look_of(job)].color;
}

const char *job_glyph(const struct screen *screen, const json_t *job)
{
    return screen->is_utf8 ? looks[look_of(job)].glyph : looks[look_of(job)].plain_glyph;
}

static char *render_glyph(const struct view *view, const json_t *job, enum color *color)
{
    *color = job_color(job);
    return xstrdup(job_glyph(view->screen, job));
}

static char *render_state(const struct view *view, const json_t *job, enum color *color)
{
    int64_t position = field_integer(job, "position", 0);
    _cleanup_free_ char *state = text_escape(job_state_shown(job), TEXT_MAX);
    *color = job_color(job);
    return position > 0 && !job_is_held(job) ? xasprintf("%s #%" PRId64, state, position) : take_ptr(state);
}

static char *render_time(const struct view *view, const json_t *job, enum color *color)
{
    bool is_narrow = view->screen->width > 0 && view->screen->width < NARROW_TIME;
    if (field_is_known(job, "run_seconds"))
        return list_seconds(view, job, "run_seconds");
    _cleanup_free_ char *wait = list_seconds(view, job, "wait_seconds");
    return job_is_done(job) ? xstrdup("-") : is_narrow ? take_ptr(wait) : xasprintf("wait %s", wait);
}

static char *render_where(const struct view *view, const json_t *job, enum color *color)
{
    return job_where(job);
}

/* Adds a driver error on its GPUs; if it ended the job, the outcome includes it already. */
static char *with_fault(const json_t *job, char *text)
{
    const json_t *usage = json_object_get(job, "usage");
    if (!field_is_known(usage, "fault") || field_is(job, "ended_by", "gpu_fault"))
        return text;
    _cleanup_free_ char *fault = field_shown(usage, "fault"), *start = text;
    return xasprintf("%s (warning: %s)", start, fault);
}

/* Its unreachable node, or its command; preceded by its progress and, if too long, by the time for which its
 * GPUs have been unused. */
static char *running_text(const struct view *view, const json_t *job, enum color *color)
{
    char *away = node_unreachable_text(view, job);
    if (away != NULL) {
        *color = COLOR_RED;
        return away;
    }
    _cleanup_free_ char *idle = usage_idle_mark(view->screen, job);
    _cleanup_free_ char *bar = job_is_done(job) ? NULL : progress_bar(view->screen, job);
    _cleanup_free_ char *command = field_shown(job, "command");
    if (idle != NULL)
        *color = COLOR_YELLOW;
    return xasprintf("%s%s%s%s%s", idle != NULL ? idle : "", idle != NULL ? "  " : "", bar != NULL ? bar : "",
        bar != NULL ? "  " : "", command);
}

/* Why the rest of an array waits, or how it ended as a whole, followed by how its elements ended. */
static char *elements_why(const json_t *job)
{
    _cleanup_free_ char *ended = elements_text(job), *start = NULL;
    if (field_is_known(job, "reason_text"))
        start = field_shown(job, "reason_text");
    else if (job_is_done(job) && !field_is(job, "ended_by", "exit"))
        start = job_outcome(job);
    return start != NULL ? xasprintf("%s; %s", start, ended) : take_ptr(ended);
}

/* On a narrow terminal the fact comes first (why_brief.h). */
static char *render_why(const struct view *view, const json_t *job, enum color *color)
{
    if (field_is_known(job, "brief"))
        return with_fault(job, field_shown(job, "brief"));
    if (elements_ended(job) > 0)
        return elements_why(job);
    char *outcome = job_outcome(job);
    if (outcome != NULL)
        return with_fault(job, outcome);
    char *stray = job_is_done(job) ? NULL : usage_stray(json_object_get(job, "usage"));
    if (stray != NULL) {
        *color = COLOR_RED;
        return stray;
    }
    char *park = park_text(view, job);
    if (park != NULL)
        return park;
    bool is_queued = field_is(job, "state", "queued");
    if (field_is_known(job, "reason_text"))
        return field_shown(job, "reason_text");
    if (is_queued && field_is_known(job, "reason"))
        return field_shown(job, "reason");
    return with_fault(job, running_text(view, job, color));
}

/* For lists with a separate column for the command. */
static char *render_waits(const struct view *view, const json_t *job, enum color *color)
{
    static const char *const members[] = { "brief", "reason_text", "reason" };
    if (!field_is(job, "state", "queued"))
        return xstrdup("-");
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (field_is_known(job, members[i]))
            return field_shown(job, members[i]);
    }
    return xstrdup("-");
}

static char *render_id(const struct view *view, const json_t *job, enum color *color)
{
    return job_id(job);
}

/* An array is shown with the elements that have not started. */
static char *render_name(const struct view *view, const json_t *job, enum color *color)
{
    const char *left = field_text(job, "array_left");
    _cleanup_free_ char *name = field_shown(job, "name");
    if (field_is_known(job, "adopted_pid"))
        return xasprintf("%s (adopted pid %" PRId64 ")", name, field_integer(job, "adopted_pid", 0));
    if (left == NULL || left[0] == '\0')
        return take_ptr(name);
    _cleanup_free_ char *shown = text_escape(left, TEXT_MAX);
    return xasprintf("%s [%s]", name, shown);
}

static char *render_gpus(const struct view *view, const json_t *job, enum color *color)
{
    double share = job_gpu_share(job);
    const char *left = field_text(job, "array_left");
    struct array array = { 0 };
    _cleanup_free_ char *each = share > 0 ? xasprintf("%g", share) : field_shown(job, "gpus");
    if (left == NULL || parse_array(left, &array, NULL) < 0)
        return take_ptr(each);
    char *text = xasprintf("%" PRIu32 "%s%s", array_size(&array), view->screen->is_utf8 ? "×" : "x", each);
    array_clear(&array);
    return text;
}

static char *render_memory_mib(const struct view *view, const json_t *job, enum color *color)
{
    if (!field_is_known(job, "gpu_mem"))
        return xstrdup("-");
    return xasprintf("%lld", (long long)(field_integer(job, "gpu_mem", 0) >> 20));
}

/* For a waiting job the time until it is expected to start, for a running one the time left of its limit. */
static char *render_left(const struct view *view, const json_t *job, enum color *color)
{
    char text[64];
    int64_t eta = field_is(job, "state", "queued") ? time_parse(field_text(job, "eta")) : 0;
    double limit = field_number(job, "time_limit_s", 0), ran = field_number(job, "run_seconds", 0);
    if (eta > 0) {
        time_format_short(eta, view->now_ms, view->times, text, sizeof(text));
        return xasprintf("~%s", text);
    }
    if (limit <= 0 || job_is_done(job) || !field_is_known(job, "started_at"))
        return xstrdup("-");
    format_duration(ran >= limit ? 0 : (int64_t)((limit - ran) * 1000), text, sizeof(text));
    return xstrdup(text);
}

static char *bare_time(const json_t *job)
{
    const char *known = field_is_known(job, "run_seconds") ? "run_seconds" : "wait_seconds";
    bool has_waited = !job_is_done(job) || field_is_known(job, "run_seconds");
    return has_waited ? xasprintf("%.3f", field_number(job, known, 0)) : xstrdup("");
}

/* For a waiting job, `eta` has the time. */
static char *bare_left(const json_t *job)
{
    double limit = field_number(job, "time_limit_s", 0), ran = field_number(job, "run_seconds", 0);
    if (limit <= 0 || job_is_done(job) || !field_is_known(job, "started_at"))
        return xstrdup("");
    return xasprintf("%.3f", ran >= limit ? 0 : limit - ran);
}

static char *render_idle(const struct view *view, const json_t *job, enum color *color)
{
    *color = field_is_known(job, "idle") ? COLOR_YELLOW : COLOR_NONE;
    return list_seconds(view, job, "idle_s");
}

static char *render_progress(const struct view *view, const json_t *job, enum color *color)
{
    char *bar = progress_bar(view->screen, job);
    return bar != NULL ? bar : xstrdup("-");
}

const struct list_column job_columns[] = {
    { "id", "ID", "number of the job, 42.3 for an array element", "id", true, 0, render_id },
    { "user", "USER", "its owner", "user", false, 0, NULL },
    { "name", "NAME", "its name, with the elements of an array that have not started", "name", false, 2,
        render_name },
    { "state", "STATE", "its state, with its place in the queue", "state", false, 0, render_state },
    { "gpus", "GPUS", "number of GPUs, or part of one", "gpus", true, 0, render_gpus, .spare = 3 },
    { "time", "TIME", "run time or waiting time", NULL, false, 0, render_time, bare_time, .spare = 1 },
    { "left", "LEFT", "remaining time; for a waiting job its expected start", NULL, false, 0, render_left,
        bare_left, .is_hidden_void = true, .spare = 2 },
    { "where", "WHERE", "its node and GPUs", NULL, false, 0, render_where, .is_hidden_void = true },
    { "why", "WHY / COMMAND",
        "why it waits, its command, or how it ended; a warning if it uses a GPU not allocated to it", NULL,
        false, 1, render_why },
    { "command", "COMMAND", "its command line", "command", false, 1, NULL },
    { "priority", "PRIO", "its priority", "priority", true, 0, NULL },
    { "position", "POS", "its place in the queue", "position", true, 0, NULL },
    { "reason", "REASON", "why it waits, as one word", "reason", false, 0, NULL },
    { "waits", "WAITS FOR", "why it waits, in a few words", NULL, false, 2, render_waits,
        .is_hidden_void = true },
    { "eta", "ETA", "expected start", "eta", false, 0, .form = list_time },
    { "latest", "LATEST", "latest expected start", "eta_latest", false, 0, .form = list_time },
    { "limit", "LIMIT", "its time limit", "time_limit_s", true, 0, .form = list_seconds },
    { "begin", "BEGIN", "earliest start", "begin_at", false, 0, .form = list_time },
    { "deadline", "DEADLINE", "deadline for its start", "deadline_at", false, 0, .form = list_time },
    { "after", "AFTER", "jobs it depends on", "after", false, 0, NULL },
    { "array", "ARRAY", "elements it was submitted with", "array", false, 0, NULL },
    { "array_job", "ARRAY_JOB", "the array it is an element of", "array_job", true, 0, NULL },
    { "submitted", "SUBMITTED", "when it was submitted", "submitted_at", false, 0, .form = list_time },
    { "started", "STARTED", "when its command started", "started_at", false, 0, .form = list_time },
    { "ended", "ENDED", "when it ended", "ended_at", false, 0, .form = list_time },
    { "wait", "WAIT", "waiting time", "wait_seconds", true, 0, .form = list_seconds },
    { "run", "RUN", "run time", "run_seconds", true, 0, .form = list_seconds },
    { "parked", "PARKED", "how long it was parked, not counted as run time", "parked_seconds", true, 0,
        .form = list_seconds },
    { "exit", "EXIT", "its exit status", "exit_code", true, 0, NULL },
    { "signal", "SIGNAL", "the signal that ended it", "signal", true, 0, NULL },
    { "ended_by", "ENDED_BY", "how it ended", "ended_by", false, 0, NULL },
    { "message", "MESSAGE", "what went wrong", "message", false, 1, NULL },
    { "node", "NODE", "its node", "node", false, 0, NULL },
    { "gpu_ids", "GPU_IDS", "GPUs requested", "gpu_ids", false, 0, NULL },
    { "gpu_mem", "GPU_MEM", "memory requested on each GPU", "gpu_mem", true, 0, .form = list_size },
    { "gpu_mib", "GPU_MIB", "the same in MiB", NULL, true, 0, render_memory_mib, .is_hidden_void = true },
    { "cpus", "CPUS", "CPUs requested per node", "cpus", true, 0, NULL },
    { "ram", "RAM", "host memory requested per node", "memory", true, 0, .form = list_size },
    { "nodes", "NODES", "nodes requested", "nodes", true, 0, NULL },
    { "attempt", "ATTEMPT", "number of attempts", "attempt", true, 0, NULL },
    { "cpu", "CPU", "CPU time used", "cpu_seconds", true, 0, .form = list_seconds },
    { "rss", "RSS", "peak memory", "max_rss_bytes", true, 0, .form = list_size },
    { "log", "LOG", "output file", "log", false, 0, NULL },
    { "preempted", "PREEMPTED", "number of preemptions", "preemptions", true, 0, NULL },
    { "restarts", "RESTARTS", "number of other requeues", "restarts", true, 0, NULL },
    { "idle", "IDLE", "time since it last used its GPUs", "idle_s", true, 0, render_idle },
    { "progress", "PROGRESS", "progress it reported", "progress", false, 0, render_progress },
    { "status", "STATUS", "status it reported", "status", false, 2, NULL },
    { "checkpointed", "CHECKPOINTED", "time of its last checkpoint report", "checkpointed_at", false, 0,
        .form = list_time },
    { "pid", "PID", "process id of the adopted process", "adopted_pid", true, 0, NULL },
    { "uid", "UID", "user id of its owner", "uid", true, 0, NULL },
    { "alias", "ALIAS", "its alias, as shown by other schedulers' commands", "alias", false, 0, NULL },
    { "mark", "", "symbol of its state", NULL, false, 0, render_glyph },
    { 0 },
};
