/* SPDX-License-Identifier: MIT */
/* One row per key: its name, type and description, and where it comes from: a member as it is, or a function.
 * The documentation uses the rows. The request has no rows here: the fields of job/ask.h are written
 * directly. */
#include "wire/json_job.h"
#include "wire/json_early.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/progress.h"
#include "job/alias.h"
#include "job/behind.h"
#include "job/elements.h"
#include "job/idle.h"
#include "wire/json_append.h"
#include "wire/json_ranks.h"
#include "wire/json_record.h"
#include "wire/json_text.h"
#include "wire/json_usage.h"

static bool is_over(const struct job *job)
{
    return job->state == JOB_DONE;
}

static bool is_not_over(const struct job *job)
{
    return job->state != JOB_DONE;
}

static bool is_queued(const struct job *job)
{
    return job_shown_state(job) == JOB_QUEUED;
}

/* The node and the GPUs of a job that is behind another one are those of that one. */
static bool has_place(const struct job *job)
{
    return !job_waits_behind(job);
}

static bool is_running(const struct job *job)
{
    return job->state == JOB_RUNNING;
}

/* True if it is queued, or parked and waits for its GPUs. */
static bool is_waiting(const struct job *job)
{
    return is_queued(job) || (job->state == JOB_RUNNING && job_park(job)->phase == PARK_WAITING);
}

static bool is_in_park(const struct job *job)
{
    return !is_over(job) && job_park(job)->phase != PARK_NONE;
}

/* It had started early, and was given its GPUs. */
static bool was_early(const struct job *job)
{
    return job_park(job)->granted_ms != 0;
}

static bool is_element(const struct job *job)
{
    return job->array_job != 0;
}

static bool has_log(const struct job *job)
{
    return is_over(job) && job_run(job)->log_path != NULL;
}

static bool has_run(const struct job *job)
{
    return is_over(job) && job->started_ms != 0;
}

/* The usage of an attempt that ended unobserved is not known. */
static bool is_measured(const struct job *job)
{
    return has_run(job) && job->end != END_NODE_LOST && job->end != END_REBOOT && job->end != END_UNKNOWN;
}

/* True when the exit code and signal of the command are known. */
static bool has_status(const struct job *job)
{
    if (job->ask->adopted_pid != 0)
        return false; // only the parent of a process knows
    switch (job->end) {
    case END_EXIT:
    case END_SIGNAL:
    case END_OOM:
    case END_GPU_FAULT:
    case END_GPU_OOM:
    case END_GPU_MEM:
    case END_START_FAILED:
    case END_SETUP_FAILED: return is_over(job);
    case END_IDLE_TIMEOUT:
    case END_BUDGET:
    case END_TIME_LIMIT:
    case END_CANCELLED: return has_run(job);
    default: return false;
    }
}

const char *json_job_state(const struct job *job)
{
    return is_over(job) ? json_job_end_state(job->end, job->exit_code) : job_state_name(job_shown_state(job));
}

/* A number whose 0 means "none". */
static json_t *json_or_null(uint64_t number)
{
    return number != 0 ? json_integer((json_int_t)number) : json_null();
}

static json_t *make_user(const struct json_job_view *view)
{
    return json_text_string(view->owner != NULL ? view->owner : usernames_name(view->names, view->job->uid));
}

static json_t *make_state(const struct json_job_view *view)
{
    return json_string(json_job_state(view->job));
}

/* Computed by the record of the array: it does not depend on the elements that are listed or kept. */
static json_t *make_elements(const struct json_job_view *view)
{
    if (!job_is_array(view->job))
        return json_null();
    struct job_elements elements = job_elements(view->job);
    bool has_exit = view->job->array_done + view->job->array_failed > 0;
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "all", (json_int_t)elements.all, "waiting",
        (json_int_t)elements.waiting, "open", (json_int_t)elements.open, "done", (json_int_t)elements.done,
        "failed", (json_int_t)elements.failed, "cancelled", (json_int_t)elements.cancelled, "exit_code",
        has_exit ? json_integer(view->job->array_exit_max) : json_null());
}

static json_t *make_alias(const struct json_job_view *view)
{
    char alias[ALIAS_SIZE];
    (void)job_alias(view->job->id, alias);
    return json_string(alias);
}

void json_job_add_element(json_t *object, const struct job *job)
{
    bool is_one = job != NULL && is_element(job);
    (void)json_object_set_new(
        object, "array_job", is_one ? json_integer((json_int_t)job->array_job) : json_null());
    (void)json_object_set_new(object, "array_index", is_one ? json_integer(job->array_index) : json_null());
}

static json_t *make_idle(const struct json_job_view *view)
{
    return json_text_string(idle_level_name(view->job->idle_level));
}

static json_t *make_hold(const struct json_job_view *view)
{
    return json_text_string(json_job_hold(view->job->hold));
}

static json_t *make_preemptions(const struct json_job_view *view)
{
    return json_or_null(view->job->preemptions - view->job->restarts);
}

static json_t *make_park_cause(const struct json_job_view *view)
{
    const struct job_park *park = job_park(view->job);
    return json_text_string(
        is_over(view->job) || park->phase == PARK_NONE ? NULL : park_cause_name(park->cause));
}

static json_t *make_granted(const struct json_job_view *view)
{
    static const struct record_list none = { 0 };
    return json_job_grants(job_waits_behind(view->job) ? &none : &view->job->grants);
}

static json_t *make_parts(const struct json_job_view *view)
{
    return json_ranks_write(view->job, view->ranks);
}

static json_t *make_earlier(const struct json_job_view *view)
{
    const struct job_earlier *earlier = job_run(view->job)->earlier;
    return earlier == NULL ? json_null()
                           : json_pack("{s:I,s:I}", "attempt", (json_int_t)earlier->attempt, "ranks",
                                 (json_int_t)earlier->ranks.count);
}

static json_t *make_wait_seconds(const struct json_job_view *view)
{
    const struct job *job = view->job;
    int64_t until_ms = view->now_ms;
    if (job->started_ms != 0)
        until_ms = job->started_ms;
    else if (is_over(job))
        until_ms = job->ended_ms;
    return json_text_seconds(until_ms - job->submitted_ms);
}

static json_t *make_run_seconds(const struct json_job_view *view)
{
    const struct job *job = view->job;
    int64_t parked_ms = job_parked_ms(job, view->now_ms); // parked, or early without its GPUs: no run time
    int64_t ms = is_over(job) ? job_run(job)->run_ms : view->now_ms - job->started_ms - parked_ms;
    return job->started_ms == 0 ? json_null() : json_text_seconds(ms);
}

static json_t *make_ended_by(const struct json_job_view *view)
{
    return is_over(view->job) ? json_string(job_end_name(view->job->end)) : json_null();
}

static json_t *make_usage(const struct json_job_view *view)
{
    return json_usage_write(view->usage, false);
}

static json_t *make_progress(const struct json_job_view *view)
{
    const struct job_usage *usage = view->usage;
    bool is_known = usage != NULL && (usage->valid & USAGE_PROGRESS) != 0;
    return is_known ? json_real((double)usage->progress_ppm / PROGRESS_WHOLE) : json_null();
}

static json_t *make_position(const struct json_job_view *view)
{
    bool is_known = view->job->state == JOB_QUEUED && view->position != 0;
    return is_known ? json_integer((json_int_t)view->position) : json_null();
}

static json_t *make_reason(const struct json_job_view *view)
{
    bool is_known = is_waiting(view->job) && view->reason != NULL && view->reason[0] != '\0';
    return json_text_string(is_known ? view->reason : NULL);
}

static json_t *make_reason_text(const struct json_job_view *view)
{
    bool has_one = (view->job->state != JOB_RUNNING || is_waiting(view->job)) && view->job->state != JOB_DONE;
    bool is_known = has_one && view->reason_text != NULL && view->reason_text[0] != '\0';
    return json_text_string(is_known ? view->reason_text : NULL);
}

static json_t *make_token(const struct json_job_view *view)
{
    return json_or_null(view->job->api_token >> 62 == 0 ? view->job->api_token : 0); // else of a job
}

static json_t *make_stopped_by(const struct json_job_view *view)
{
    const struct job *job = view->job;
    /* If the process of a waiting adoption ends, no user has cancelled the job. */
    bool is_lost = job->ask->adopted_pid != 0 && job->stop_reason == END_NONE;
    bool is_known = !is_lost && (is_over(job) ? job->end : job->stop_reason) == END_CANCELLED;
    return json_text_string(is_known ? usernames_name(view->names, job->stopped_by) : NULL);
}

enum place { IN_VIEW, IN_JOB, IN_RUN, IN_PARK, IN_USAGE };

/* NULL: there is none. */
static const void *object_in(const struct json_job_view *view, enum place place)
{
    switch (place) {
    case IN_JOB: return view->job;
    case IN_RUN: return job_run(view->job);
    case IN_PARK: return job_park(view->job);
    case IN_USAGE: return view->usage;
    default: return view;
    }
}

#define MEMBER(place_, struct_, member_, ...)                                                                \
    .place = (place_), .field = { .offset = offsetof(struct struct_, member_), .kind = RECORD_##__VA_ARGS__ }
#define VIEW(...)  MEMBER(IN_VIEW, json_job_view, __VA_ARGS__)
#define JOB(...)   MEMBER(IN_JOB, job, __VA_ARGS__)
#define RUN(...)   MEMBER(IN_RUN, job_run, __VA_ARGS__)
#define PARK(...)  MEMBER(IN_PARK, job_park, __VA_ARGS__)
#define USAGE(...) MEMBER(IN_USAGE, job_usage, __VA_ARGS__)

static const struct {
    struct json_job_key key;
    enum place place;
    struct record_field field;                         // a member there as it is; a time, text or
                                                       // number of 0 is null unless it has_zero
    bool (*when)(const struct job *job);               // else null; NULL: always
    json_t *(*make)(const struct json_job_view *view); // in place of a member
} rows[] = {
    { { "id", "integer", "never reused" }, JOB(id, U64, .has_zero = true) },
    { { "alias", "string", "the number as eight characters; accepted by every command" },
        .make = make_alias },
    { { "user", "string", "the owner's name at submission, or the number if there is none" },
        .make = make_user },
    { { "uid", "integer", "the owner's user id" }, JOB(uid, U32, .has_zero = true) },
    { { "name", "string", "as given, or the last path component of the command" }, JOB(name, STRING) },
    { { "state", "string", "queued, starting, running, stopping, done, failed or cancelled" },
        .make = make_state },
    { { "attempt", "integer", "number of attempts so far" }, JOB(attempt, U32, .has_zero = true) },
    { { "array_left", "string|null", "indexes that are not separate jobs yet" }, JOB(array_left, STRING) },
    { { "elements", "object|null",
          "of an array, its elements by state: all, waiting (no separate jobs yet), open (separate jobs that "
          "have not ended), done, failed, cancelled; exit_code: the highest exit status of those that "
          "ended" },
        .make = make_elements },
    { { "array_job", "integer|null", "the array it is an element of" }, JOB(array_job, U64) },
    { { "array_index", "integer|null", "its index in that array" }, JOB(array_index, U32, .has_zero = true),
        .when = is_element },
    { { "idle_s", "number|null", "seconds since it last used any of its GPUs" }, VIEW(idle_ms, DURATION),
        .when = is_running },
    { { "idle_end_s", "number|null", "a running job is ended at this value, set by the job or the site" },
        VIEW(idle_end_ms, DURATION) },
    { { "idle", "string|null", "consequence: told (warned), or yields (preemptible)" }, .make = make_idle },
    { { "hold", "string|null", "held by: user or admin" }, .make = make_hold },
    { { "preemptions", "integer|null", "number of preemptions" }, .make = make_preemptions },
    { { "restarts", "integer|null", "other requeues: on request, at the time limit, or after a failure" },
        JOB(restarts, U32) },
    { { "retries", "integer|null", "of those: after a failure" }, JOB(retries, U32) },
    { { "retry_at", "string|null", "earliest time of the next retry" }, JOB(retry_ms, TIME),
        .when = is_queued },
    { { "suspended_at", "string|null", "time at which it was suspended" }, RUN(suspended_ms, TIME),
        .when = is_running },
    { { "park", "string|null",
          "while it is parked: saving, parked, waiting (for its GPUs) or restoring; early: it has started on "
          "the CPU, and waits for its GPUs. Its `state` is running" },
        .make = json_early_park },
    { { "parked_at", "string|null", "since when it is parked" }, .make = json_early_parked_at },
    { { "parked_seconds", "number|null", "for how long its attempt was parked, so far" },
        .make = json_early_parked_s },
    { { "early_seconds", "number|null", "for how long it ran before it had its GPUs, so far" },
        .make = json_early_seconds },
    { { "gpus_at", "string|null", "when a job that had started early was given its GPUs" },
        PARK(granted_ms, TIME) },
    { { "saved_seconds", "number|null", "of `early_seconds`: how long it ran before it waited for a GPU" },
        PARK(saved_ms, DURATION, .has_zero = true), .when = was_early },
    { { "early_start", "string|null",
          "while it waits: whether it starts before its GPUs are free, and why (`yes, ...` or `no, ...`)" },
        VIEW(early_start, STRING) },
    { { "parked_bytes", "integer|null", "contents of its GPU memory that are in host memory" },
        PARK(bytes, U64) },
    { { "return_at", "string|null", "time at which the parked job returns automatically" },
        PARK(return_ms, TIME) },
    { { "park_cause", "string|null",
          "while it is parked: asked, preempted, time_limit, found, shorter or due" },
        .make = make_park_cause },
    { { "park_guest", "integer|null", "the job for which it is parked" }, PARK(guest, U64),
        .when = is_in_park },
    { { "park_host", "integer|null", "the job that is parked for it" }, VIEW(park_host, U64) },
    { { "latest_return", "string|null", "time by which a job parked by mgpud itself has its GPUs again" },
        VIEW(latest_return_ms, TIME) },
    { { "gpus_due_to", "integer|null",
          "the parked job that gets its GPUs at `gpus_due_at`: it cannot be parked, and starts again, once, "
          "if "
          "it still runs then" },
        VIEW(lender, U64) },
    { { "gpus_due_at", "string|null", "that time" }, VIEW(due_ms, TIME) },
    { { "gpus_lent_to", "integer|null", "of a parked job: the one of which it is the `gpus_due_to`" },
        VIEW(borrower, U64) },
    { { "reclaimed_by", "integer|null",
          "the parked job to which its GPUs were due, so that it has started again; that happens once" },
        PARK(lender, U64) },
    { { "park_bar", "string|null", "with `park: auto`: why mgpud does not park it automatically" },
        VIEW(park_bar, STRING) },
    { { "park_text", "string|null", "why the last request to park or restore it failed" },
        PARK(text, STRING) },
    { { "unreachable_since", "string|null",
          "it is running, and its node has been unreachable since this time" },
        VIEW(unreachable_ms, TIME) },
    { { "command", "string", "one line in shell syntax, cut at 160 bytes" }, JOB(summary, STRING) },
    { { "node", "string|null", "node of its latest attempt" }, JOB(node, STRING), .when = has_place },
    { { "granted", "array",
          "allocated GPUs: index, uuid, memory (bytes, 0: all), shared, share (thousandths), node (null: "
          "`node`)" },
        .make = make_granted },
    { { "ranks", "array|null",
          "on several nodes, for each rank: rank, node, gpus, state, ended_by, exit_code, log, "
          "unreachable_since" },
        .make = make_parts },
    { { "after_shown", "string|null",
          "`after`, with elements of arrays by array and index: 41.3:ok; null: it names none" },
        VIEW(after_shown, STRING) },
    { { "earlier", "object|null",
          "its latest attempt that was requeued and had output: attempt, ranks (on how many nodes it was)" },
        .make = make_earlier },
    { { "submitted_at", "string", "RFC 3339, UTC" }, JOB(submitted_ms, TIME) },
    { { "started_at", "string|null", "start of the command" }, JOB(started_ms, TIME) },
    { { "ended_at", "string|null", "end of the job" }, JOB(ended_ms, TIME), .when = is_over },
    { { "wait_seconds", "number", "from submit to start, so far" }, .make = make_wait_seconds },
    { { "run_seconds", "number|null",
          "from start to end, so far, without the time for which it was parked; of an early start, from "
          "when it had its GPUs" },
        .make = make_run_seconds },
    { { "exit_code", "integer|null", "exit status, or 128 + signal" }, JOB(exit_code, I32, .has_zero = true),
        .when = has_status },
    { { "signal", "integer|null", "the signal that ended it" }, RUN(signal, U32), .when = has_status },
    { { "ended_by", "string|null",
          "exit, signal, cancelled, start_failed, setup_failed, unknown, reboot, time_limit, deadline,"
          " dependency, oom, gpu_fault, idle_timeout, released, node_lost, gpu_oom,"
          " gpu_mem, budget" },
        .make = make_ended_by },
    { { "message", "string|null", "what went wrong, in words" }, JOB(text, STRING) },
    { { "log", "string|null", "output file, on its node" }, RUN(log_path, STRING) },
    { { "log_bytes", "integer|null", "size of the output, if ended" }, RUN(log_bytes, U64, .has_zero = true),
        .when = has_log },
    { { "cpu_seconds", "number|null", "user + system time, if ended" },
        RUN(cpu_ms, DURATION, .has_zero = true), .when = is_measured },
    { { "max_rss_bytes", "integer|null", "largest memory of one process, if ended" }, RUN(max_rss, U64),
        .when = is_measured },
    { { "progress", "number|null", "progress reported by the job, 0 to 1" }, .make = make_progress },
    { { "status", "string|null", "status reported by the job" }, USAGE(status, STRING) },
    { { "checkpointed_at", "string|null", "time of its last report that work is saved" },
        USAGE(checkpointed_ms, TIME) },
    { { "usage", "object|null", "use of its GPUs: see [usage](#usage)" }, .make = make_usage },
    { { "position", "integer|null",
          "place in the queue, 1 is next; null while a limit, a hold, a dependency or a begin time keeps it "
          "out of the queue" },
        .make = make_position },
    { { "reason", "string|null",
          "why it waits in the queue: the first `code` of [why](#why), a closed list; null in other states" },
        .make = make_reason },
    { { "reason_text", "string|null",
          "the same as a sentence; for a job that has been starting or stopping for long, what it is waiting "
          "for" },
        .make = make_reason_text },
    { { "eta", "string|null", "expected start" }, VIEW(eta_ms, TIME), .when = is_waiting },
    { { "eta_from", "string|null", "a tenth of such jobs starts before this" }, VIEW(eta_from_ms, TIME),
        .when = is_waiting },
    { { "eta_until", "string|null", "a tenth of such jobs starts after this" }, VIEW(eta_until_ms, TIME),
        .when = is_waiting },
    { { "eta_latest", "string|null", "latest start expected" }, VIEW(eta_latest_ms, TIME),
        .when = is_waiting },
    { { "expected_end", "string|null",
          "expected end, by the jobs like it, of one that has its GPUs or an `eta`; expected starts rest on "
          "it" },
        VIEW(expected_end_ms, TIME), .when = is_not_over },
    { { "stopped_by", "string|null", "user who cancelled it" }, .make = make_stopped_by },
    { { "token", "integer|null", "number of the token it was submitted with" }, .make = make_token },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The request, under the names by which it was submitted. */
static void add_ask(const struct json_job_view *view, struct json_members *members)
{
    for (size_t i = 0; i < job_ask_record.n_fields; i++) {
        const struct record_field *field = &job_ask_record.fields[i];
        if (field->is_hidden)
            continue;
        json_t *value = json_record_answer(field, view->job->ask);
        if (field->old_name != NULL)
            json_members_add(members, field->old_name, json_incref(value));
        json_members_add(members, field->name, value);
    }
}

static json_t *make_value(const struct json_job_view *view, size_t i)
{
    if (rows[i].make != NULL)
        return rows[i].make(view);
    const void *object = object_in(view, rows[i].place);
    bool is_there = object != NULL && (rows[i].when == NULL || rows[i].when(view->job));
    return is_there ? json_record_answer(&rows[i].field, object) : json_null();
}

static void add_members(const struct json_job_view *view, struct json_members *members)
{
    for (size_t i = 0; i < ROWS; i++)
        json_members_add(members, rows[i].key.name, make_value(view, i));
    add_ask(view, members);
}

void json_job_append(const struct json_job_view *view, struct buffer *out)
{
    struct json_members members;
    json_members_begin(&members, out, view->is_sparse);
    add_members(view, &members);
    json_members_end(&members);
}

json_t *json_job_write(const struct json_job_view *view)
{
    struct json_members members = { .tree = json_object(), .is_sparse = view->is_sparse };
    add_members(view, &members);
    return members.tree;
}

bool json_job_key(size_t i, struct json_job_key *ret)
{
    if (i < ROWS) {
        *ret = rows[i].key;
        return true;
    }
    size_t at = ROWS;
    for (size_t f = 0; f < job_ask_record.n_fields; f++) {
        const struct record_field *field = &job_ask_record.fields[f];
        const char *const names[] = { field->old_name, field->name };
        for (size_t n = field->old_name != NULL ? 0 : 1; n < 2 && !field->is_hidden; n++)
            if (at++ == i) {
                *ret = (struct json_job_key){ names[n], json_record_answer_type(field), field->help };
                return true;
            }
    }
    return false;
}
