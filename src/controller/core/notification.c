/* SPDX-License-Identifier: MIT */
/*
 * The contents are written when the event happens, so a notification delivered an hour later still describes
 * that event. Names come from users: their control characters are removed.
 */
#include "controller/core/notification.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/utc.h"
#include "wire/json_job.h"
#include "wire/message.h"

#define SHOWN_MAX 256U // bytes of a name or path in a line

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct notification, seq, 0),
    RECORD_FIELD(2, RECORD_U32, struct notification, target, 0),
    RECORD_FIELD(3, RECORD_U64, struct notification, job, 0),
    RECORD_FIELD(4, RECORD_U32, struct notification, uid, 0),
    RECORD_FIELD(5, RECORD_U32, struct notification, gid, 0),
    RECORD_FIELD(19, RECORD_STRING, struct notification, user, SPEC_NAME_MAX),
    RECORD_FIELD(6, RECORD_U32, struct notification, event, 0),
    RECORD_FIELD(7, RECORD_STRING, struct notification, to, NOTIFY_TARGET_MAX),
    RECORD_FIELD(8, RECORD_STRING, struct notification, node, SPEC_NAME_MAX),
    RECORD_FIELD(9, RECORD_I64, struct notification, made_ms, 0),
    RECORD_FIELD(10, RECORD_I64, struct notification, due_ms, 0),
    RECORD_FIELD(11, RECORD_I64, struct notification, over_ms, 0),
    RECORD_FIELD(12, RECORD_U32, struct notification, state, 0),
    RECORD_FIELD(13, RECORD_U32, struct notification, tries, 0),
    RECORD_FIELD(14, RECORD_STRING, struct notification, text, EVENT_TEXT_MAX),
    RECORD_FIELD(15, RECORD_STRING, struct notification, subject, NOTIFY_TEXT_MAX),
    RECORD_FIELD(16, RECORD_STRING, struct notification, body, NOTIFY_TEXT_MAX),
    RECORD_FIELD(17, RECORD_STRING, struct notification, json, NOTIFY_JSON_MAX),
    RECORD_FIELD(18, RECORD_ENV, struct notification, env, NOTIFY_TEXT_MAX),
};
const struct record_type notification_record = RECORD_TYPE(167, "notice", struct notification, fields);

const char *notification_state_name(enum notification_state state)
{
    static const char *const names[] = {
        [NOTIFICATION_WAITING] = "waiting",
        [NOTIFICATION_SENT] = "sent",
        [NOTIFICATION_FAILED] = "failed",
        [NOTIFICATION_DROPPED] = "dropped",
    };
    return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "invalid";
}

/* --- words --- */

/* " after 2h14m", " on gpu1", if known. */
static void append_place(struct buffer *out, const struct job *job, const char *before_span)
{
    char span[32];
    if (job_run(job)->run_ms > 0) {
        format_duration(job_run(job)->run_ms, span, sizeof(span));
        buffer_printf(out, " %s %s", before_span, span);
    }
    if (job->node != NULL)
        buffer_printf(out, " on %s", job->node);
}

/* "exit 1", "signal 11", or the API's code for another end. */
static void append_cause(struct buffer *out, const struct job *job)
{
    if (job->end == END_EXIT)
        buffer_printf(out, "exit %d", job->exit_code);
    else if (job->end == END_SIGNAL)
        buffer_printf(out, "signal %u", job_run(job)->signal);
    else
        buffer_append_text(out, job_end_name(job->end));
}

static void append_end(struct buffer *out, const struct job *job)
{
    const char *state = json_job_state(job);
    bool is_done = strcmp(state, "done") == 0;
    buffer_printf(out, "%s", state);
    if (strcmp(state, "failed") == 0) {
        buffer_append_text(out, " (");
        append_cause(out, job);
        buffer_append_text(out, ")");
    }
    if (job_is_array(job) && job->array_failed > 0)
        buffer_printf(out, ", %u of its elements failed", job->array_failed);
    else
        append_place(out, job, is_done ? "in" : "after");
}

/* Why it was parked, and when it returns, or that it must be told to return. */
static void append_park(struct buffer *out, const struct job *job, int64_t back_ms)
{
    static const char *const causes[PARK_CAUSES] = {
        [PARK_PREEMPTED] = " because other jobs need its GPUs",
        [PARK_TIME_LIMIT] = " at its time limit",
        [PARK_FOUND] = " after mgpud was restored",
        [PARK_DUE] = " because its GPUs were due to a job that had been parked for it",
    };
    const struct job_park *park = job_park(job);
    char back[64];
    const char *cause = park->cause < PARK_CAUSES ? causes[park->cause] : NULL;
    buffer_append_text(out, "was parked");
    if (job->node != NULL)
        buffer_printf(out, " on %s", job->node);
    if (cause != NULL)
        buffer_append_text(out, cause);
    if (park->cause == PARK_SHORTER)
        buffer_printf(out, " for job %" PRIu64 ", which will probably end much sooner", park->guest);
    if (park->phase == PARK_WAITING || park->return_ms != 0)
        buffer_append_text(out, "; it continues automatically");
    if (back_ms != 0) {
        utc_format(back_ms, back, sizeof(back));
        buffer_printf(out, ", at the latest at %s", back);
    }
    if (park->phase != PARK_WAITING && park->return_ms == 0)
        buffer_printf(out, "; mgpu unpark %" PRIu64 " continues it", job->id);
}

/* due_ms: when its GPUs are due to a parked job; 0: they are not. */
static void append_start(struct buffer *out, const struct job *job, int64_t due_ms)
{
    char due[64];
    buffer_printf(out, "started%s%s", job->node != NULL ? " on " : "", job->node != NULL ? job->node : "");
    if (due_ms == 0)
        return;
    utc_format(due_ms, due, sizeof(due));
    buffer_printf(
        out, "; it starts again, once, if it still runs at %s: a parked job needs its GPUs then", due);
}

static void append_preemption(struct buffer *out, const struct job *job, const struct job_event *event)
{
    const struct job_park *park = job_park(job);
    buffer_append_text(out, "was preempted and requeued");
    if (park->reclaimed == event->attempt)
        buffer_printf(out, ", because its GPUs were due to job %" PRIu64 ", which was parked", park->lender);
}

static void append_unpark(struct buffer *out, const struct job *job, int64_t now_ms)
{
    char span[32];
    format_duration(job_parked_ms(job, now_ms), span, sizeof(span));
    buffer_printf(out, "continues%s%s; it was parked for %s", job->node != NULL ? " on " : "",
        job->node != NULL ? job->node : "", span);
}

char *notification_subject(
    const struct job *job, const struct job_event *event, enum notify_event what, int64_t back_ms)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *name = text_escape(job->name != NULL ? job->name : "", SHOWN_MAX);
    buffer_printf(&out, "%s %" PRIu64 " (%s) ", job_is_array(job) ? "array" : "job", job->id, name);
    if (what == NOTIFY_START)
        append_start(&out, job, back_ms);
    else if (what == NOTIFY_PREEMPT)
        append_preemption(&out, job, event);
    else if (what == NOTIFY_REQUEUE)
        buffer_printf(&out, "was requeued (%s)", requeue_cause_name(event->cause));
    else if (what == NOTIFY_PARK)
        append_park(&out, job, back_ms);
    else if (what == NOTIFY_UNPARK)
        append_unpark(&out, job, event->wall_ms);
    else
        append_end(&out, job);
    return buffer_take(&out);
}

static void append_line(struct buffer *out, const char *label, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    _cleanup_free_ char *shown = text_escape(text, EVENT_TEXT_MAX);
    buffer_printf(out, "%-10s %s\n", label, shown);
}

static void append_time(struct buffer *out, const char *label, int64_t wall_ms)
{
    char text[64];
    utc_format(wall_ms, text, sizeof(text));
    if (wall_ms != 0)
        append_line(out, label, text);
}

/* The last lines of a failed command's output, each escaped by itself. */
static void append_tail(struct buffer *out, const char *tail)
{
    if (tail == NULL || tail[0] == '\0')
        return;
    buffer_append_text(out, "\nThe last lines of its output:\n\n");
    for (const char *line = tail; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        _cleanup_free_ char *copy = xstrndup(line, length), *shown = text_escape(copy, USAGE_TAIL_MAX);
        buffer_printf(out, "    %s\n", shown);
        line += length + (line[length] == '\n');
    }
}

static char *make_body(const struct job *job, enum notify_event what, const char *subject)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    bool is_over = job->state == JOB_DONE;
    buffer_printf(&out, "%s\n\n", subject);
    append_line(&out, "command", job->summary);
    append_line(&out, "node", job->node);
    append_time(&out, "submitted", job->submitted_ms);
    append_time(&out, "started", job->started_ms);
    append_time(&out, "ended", is_over ? job->ended_ms : 0);
    append_line(&out, "output", job_run(job)->log_path);
    append_line(&out, "message", job->text);
    if (is_over && job_run(job)->usage != NULL)
        append_tail(&out, job_run(job)->usage->tail);
    buffer_printf(&out, "\nmgpu show %" PRIu64 " tells more; mgpu logs %" PRIu64 " has the output.\n",
        job->id, job->id);
    if (what == NOTIFY_FAIL)
        buffer_printf(&out, "mgpu retry %" PRIu64 " submits it again.\n", job->id);
    return buffer_take(&out);
}

/* --- what a command finds --- */

static void add_env(struct strings *env, const char *name, char *value)
{
    strings_take(env, xasprintf("%s=%s", name, value != NULL ? value : ""));
    free(value);
}

static void make_env(const struct job *job, struct notification *notification)
{
    bool is_over = job->state == JOB_DONE;
    struct strings *env = &notification->env;
    add_env(env, "MGPU_NOTICE", xasprintf("%" PRIu64 ".%u", notification->seq, notification->target));
    add_env(env, "MGPU_JOB", xasprintf("%" PRIu64, job->id));
    add_env(env, "MGPU_EVENT", xstrdup(notify_event_name(notification->event)));
    add_env(env, "MGPU_STATE", xstrdup(json_job_state(job)));
    add_env(env, "MGPU_EXIT", is_over ? xasprintf("%d", job->exit_code) : NULL);
    add_env(env, "MGPU_ENDED_BY", is_over ? xstrdup(job_end_name(job->end)) : NULL);
    add_env(env, "MGPU_NAME", text_escape(job->name != NULL ? job->name : "", SHOWN_MAX));
    add_env(env, "MGPU_NODE", xstrdup(job->node));
    add_env(env, "MGPU_ATTEMPT", xasprintf("%u", job->attempt));
    add_env(env, "MGPU_LOG",
        job_run(job)->log_path != NULL ? text_escape(job_run(job)->log_path, SPEC_PATH_MAX) : NULL);
    add_env(env, "MGPU_TEXT", xstrdup(notification->subject));
}

struct notification *notification_new(const struct job *job, const struct job_event *event,
    enum notify_event what, int64_t back_ms, uint32_t target, const char *json)
{
    struct notification *notification = xcalloc(1, sizeof(*notification));
    bool fits = json != NULL && strlen(json) <= NOTIFY_JSON_MAX;
    *notification = (struct notification){
        .seq = event->seq,
        .target = target,
        .job = job->id,
        .uid = job->uid,
        .gid = job->gid,
        .event = what,
        .to = xstrdup(job->ask->notify.items[target]),
        .node = xstrdup(job->node),
        .made_ms = event->wall_ms,
        .due_ms = event->wall_ms,
        .json = fits ? xstrdup(json) : NULL,
        .subject = notification_subject(job, event, what, back_ms),
    };
    notification->body = make_body(job, what, notification->subject);
    make_env(job, notification);
    return notification;
}

void notification_shrink(struct notification *notification)
{
    char **texts[] = { &notification->subject, &notification->body, &notification->json };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
    strings_clear(&notification->env);
}

void notification_free(struct notification *notification)
{
    if (notification == NULL)
        return;
    record_clear(&notification_record, notification);
    free(notification);
}
