/* SPDX-License-Identifier: MIT */
/* One row per key: its name, type, description and function. The documentation uses the rows. The request has
 * no rows here: the fields of job/ask.h are written directly. */
#include "wire/json_job.h"
#include "wire/json_early.h"

#include <stdbool.h>
#include <string.h>

#include "base/progress.h"
#include "job/alias.h"
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

static bool has_run(const struct job *job)
{
    return is_over(job) && job->started_ms != 0;
}

/* Of an attempt that ended where nobody could look, what it used is not known. */
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
    return is_over(job) ? json_job_end_state(job->end, job->exit_code) : job_state_name(job->state);
}

/* A number of which 0 means that there is none. */
static json_t *json_or_null(uint64_t number)
{
    return number != 0 ? json_integer((json_int_t)number) : json_null();
}

static json_t *make_id(const struct json_job_view *view)
{
    return json_integer((json_int_t)view->job->id);
}

static json_t *make_user(const struct json_job_view *view)
{
    return json_text_string(view->owner != NULL ? view->owner : usernames_name(view->names, view->job->uid));
}

static json_t *make_uid(const struct json_job_view *view)
{
    return json_integer(view->job->uid);
}

static json_t *make_name(const struct json_job_view *view)
{
    return json_text_string(view->job->name);
}

static json_t *make_state(const struct json_job_view *view)
{
    return json_string(json_job_state(view->job));
}

static json_t *make_attempt(const struct json_job_view *view)
{
    return json_integer(view->job->attempt);
}

static json_t *make_array_left(const struct json_job_view *view)
{
    return json_text_string(view->job->array_left);
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

static json_t *make_array_job(const struct json_job_view *view)
{
    return json_or_null(view->job->array_job);
}

static json_t *index_of(const struct job *job)
{
    return job->array_job != 0 ? json_integer(job->array_index) : json_null();
}

static json_t *make_array_index(const struct json_job_view *view)
{
    return index_of(view->job);
}

void json_job_add_element(json_t *object, const struct job *job)
{
    (void)json_object_set_new(object, "array_job", job != NULL ? json_or_null(job->array_job) : json_null());
    (void)json_object_set_new(object, "array_index", job != NULL ? index_of(job) : json_null());
}

static json_t *make_idle_s(const struct json_job_view *view)
{
    bool is_known = view->job->state == JOB_RUNNING && view->idle_ms > 0;
    return is_known ? json_text_seconds(view->idle_ms) : json_null();
}

static json_t *make_idle_end_s(const struct json_job_view *view)
{
    return view->idle_end_ms > 0 ? json_text_seconds(view->idle_end_ms) : json_null();
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

static json_t *make_restarts(const struct json_job_view *view)
{
    return json_or_null(view->job->restarts);
}

static json_t *make_retries(const struct json_job_view *view)
{
    return json_or_null(view->job->retries);
}

static json_t *make_retry_at(const struct json_job_view *view)
{
    return json_text_time(view->job->state == JOB_QUEUED ? view->job->retry_ms : 0);
}

static json_t *make_suspended_at(const struct json_job_view *view)
{
    return json_text_time(view->job->state == JOB_RUNNING ? job_run(view->job)->suspended_ms : 0);
}

static json_t *make_parked_bytes(const struct json_job_view *view)
{
    return json_or_null(job_park(view->job)->bytes);
}

static json_t *make_return_at(const struct json_job_view *view)
{
    return json_text_time(job_park(view->job)->return_ms);
}

static json_t *make_park_cause(const struct json_job_view *view)
{
    const struct job_park *park = job_park(view->job);
    return json_text_string(
        is_over(view->job) || park->phase == PARK_NONE ? NULL : park_cause_name(park->cause));
}

static json_t *make_park_guest(const struct json_job_view *view)
{
    const struct job_park *park = job_park(view->job);
    return json_or_null(is_over(view->job) || park->phase == PARK_NONE ? 0 : park->guest);
}

static json_t *make_park_host(const struct json_job_view *view)
{
    return json_or_null(view->park_host);
}

static json_t *make_latest_return(const struct json_job_view *view)
{
    return json_text_time(view->latest_return_ms);
}

static json_t *make_park_bar(const struct json_job_view *view)
{
    return json_text_string(view->park_bar);
}

static json_t *make_park_text(const struct json_job_view *view)
{
    return json_text_string(job_park(view->job)->text);
}

static json_t *make_unreachable_since(const struct json_job_view *view)
{
    return json_text_time(view->unreachable_ms);
}

static json_t *make_command(const struct json_job_view *view)
{
    return json_text_string(view->job->summary);
}

static json_t *make_node(const struct json_job_view *view)
{
    return json_text_string(view->job->node);
}

static json_t *make_granted(const struct json_job_view *view)
{
    return json_job_grants(&view->job->grants);
}

static json_t *make_parts(const struct json_job_view *view)
{
    return json_ranks_write(view->job, view->ranks);
}

static json_t *make_submitted_at(const struct json_job_view *view)
{
    return json_text_time(view->job->submitted_ms);
}

static json_t *make_started_at(const struct json_job_view *view)
{
    return json_text_time(view->job->started_ms);
}

static json_t *make_ended_at(const struct json_job_view *view)
{
    return json_text_time(is_over(view->job) ? view->job->ended_ms : 0);
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
    int64_t early_ms = job_early_ms(job, view->now_ms); // that is no run time: its limit begins afterwards
    int64_t ms = is_over(job) ? job_run(job)->run_ms : view->now_ms - job->started_ms - early_ms;
    return job->started_ms == 0 ? json_null() : json_text_seconds(ms);
}

static json_t *make_exit_code(const struct json_job_view *view)
{
    return has_status(view->job) ? json_integer(view->job->exit_code) : json_null();
}

static json_t *make_signal(const struct json_job_view *view)
{
    uint32_t number = job_run(view->job)->signal;
    return has_status(view->job) && number != 0 ? json_integer(number) : json_null();
}

static json_t *make_ended_by(const struct json_job_view *view)
{
    return is_over(view->job) ? json_string(job_end_name(view->job->end)) : json_null();
}

static json_t *make_message(const struct json_job_view *view)
{
    return json_text_string(view->job->text);
}

static json_t *make_log(const struct json_job_view *view)
{
    return json_text_string(job_run(view->job)->log_path);
}

static json_t *make_log_bytes(const struct json_job_view *view)
{
    bool is_known = is_over(view->job) && job_run(view->job)->log_path != NULL;
    return is_known ? json_integer((json_int_t)job_run(view->job)->log_bytes) : json_null();
}

static json_t *make_cpu_seconds(const struct json_job_view *view)
{
    return is_measured(view->job) ? json_text_seconds((int64_t)job_run(view->job)->cpu_ms) : json_null();
}

static json_t *make_max_rss(const struct json_job_view *view)
{
    return is_measured(view->job) ? json_or_null(job_run(view->job)->max_rss) : json_null();
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

static json_t *make_status(const struct json_job_view *view)
{
    return json_text_string(view->usage != NULL ? view->usage->status : NULL);
}

static json_t *make_checkpointed_at(const struct json_job_view *view)
{
    return json_text_time(view->usage != NULL ? view->usage->checkpointed_ms : 0);
}

static json_t *make_position(const struct json_job_view *view)
{
    bool is_known = view->job->state == JOB_QUEUED && view->position != 0;
    return is_known ? json_integer((json_int_t)view->position) : json_null();
}

/* It is queued, or parked and waits for its GPUs. */
static bool is_waiting(const struct job *job)
{
    return job->state == JOB_QUEUED || (job->state == JOB_RUNNING && job_park(job)->phase == PARK_WAITING);
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

static json_t *make_eta(const struct json_job_view *view)
{
    return json_text_time(is_waiting(view->job) ? view->eta_ms : 0);
}

static json_t *make_eta_latest(const struct json_job_view *view)
{
    return json_text_time(is_waiting(view->job) ? view->eta_latest_ms : 0);
}

static json_t *make_eta_from(const struct json_job_view *view)
{
    return json_text_time(is_waiting(view->job) ? view->eta_from_ms : 0);
}

static json_t *make_eta_until(const struct json_job_view *view)
{
    return json_text_time(is_waiting(view->job) ? view->eta_until_ms : 0);
}

static json_t *make_expected_end(const struct json_job_view *view)
{
    return json_text_time(is_over(view->job) ? 0 : view->expected_end_ms);
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

static const struct {
    struct json_job_key key;
    json_t *(*make)(const struct json_job_view *view);
} rows[] = {
    { { "id", "integer", "never reused" }, make_id },
    { { "alias", "string", "the number as eight characters; accepted by every command" }, make_alias },
    { { "user", "string", "the owner's name at submission, or the number if there is none" }, make_user },
    { { "uid", "integer", "the owner's user id" }, make_uid },
    { { "name", "string", "as given, or the last path component of the command" }, make_name },
    { { "state", "string", "queued, starting, running, stopping, done, failed or cancelled" }, make_state },
    { { "attempt", "integer", "number of attempts so far" }, make_attempt },
    { { "array_left", "string|null", "indexes that are not separate jobs yet" }, make_array_left },
    { { "elements", "object|null",
          "of an array, its elements by state: all, waiting (no separate jobs yet), open (separate jobs that "
          "have not ended), done, failed, cancelled; exit_code: the highest exit status of those that "
          "ended" },
        make_elements },
    { { "array_job", "integer|null", "the array it is an element of" }, make_array_job },
    { { "array_index", "integer|null", "its index in that array" }, make_array_index },
    { { "idle_s", "number|null", "seconds since it last used any of its GPUs" }, make_idle_s },
    { { "idle_end_s", "number|null", "a running job is ended at this value, set by the job or the site" },
        make_idle_end_s },
    { { "idle", "string|null", "consequence: told (warned), or yields (preemptible)" }, make_idle },
    { { "hold", "string|null", "held by: user or admin" }, make_hold },
    { { "preemptions", "integer|null", "number of preemptions" }, make_preemptions },
    { { "restarts", "integer|null", "other requeues: on request, at the time limit, or after a failure" },
        make_restarts },
    { { "retries", "integer|null", "of those: after a failure" }, make_retries },
    { { "retry_at", "string|null", "earliest time of the next retry" }, make_retry_at },
    { { "suspended_at", "string|null", "time at which it was suspended" }, make_suspended_at },
    { { "park", "string|null",
          "while it is parked: saving, parked, waiting (for its GPUs) or restoring; early: it has started on "
          "the CPU, and waits for its GPUs. Its `state` is running" },
        json_early_park },
    { { "parked_at", "string|null", "since when it is parked" }, json_early_parked_at },
    { { "parked_seconds", "number|null", "for how long its attempt was parked, so far" },
        json_early_parked_s },
    { { "early_seconds", "number|null", "for how long it ran before it had its GPUs, so far" },
        json_early_seconds },
    { { "gpus_at", "string|null", "when a job that had started early was given its GPUs" },
        json_early_gpus_at },
    { { "saved_seconds", "number|null", "of `early_seconds`: how long it ran before it waited for a GPU" },
        json_early_saved },
    { { "early_start", "string|null",
          "while it waits: whether it starts before its GPUs are free, and why (`yes, ...` or `no, ...`)" },
        json_early_start },
    { { "parked_bytes", "integer|null", "contents of its GPU memory that are in host memory" },
        make_parked_bytes },
    { { "return_at", "string|null", "time at which the parked job returns by itself" }, make_return_at },
    { { "park_cause", "string|null",
          "while it is parked: asked, preempted, time_limit, found, shorter or due" },
        make_park_cause },
    { { "park_guest", "integer|null", "the job for which it is parked" }, make_park_guest },
    { { "park_host", "integer|null", "the job that is parked for it" }, make_park_host },
    { { "latest_return", "string|null", "time by which a job parked by mgpud itself has its GPUs again" },
        make_latest_return },
    { { "park_bar", "string|null", "with `park: auto`: why mgpud does not park it by itself" },
        make_park_bar },
    { { "park_text", "string|null", "why the last request to park or restore it failed" }, make_park_text },
    { { "unreachable_since", "string|null",
          "it is running, and its node has been unreachable since this time" },
        make_unreachable_since },
    { { "command", "string", "one line in shell syntax, cut at 160 bytes" }, make_command },
    { { "node", "string|null", "node of its latest attempt" }, make_node },
    { { "granted", "array",
          "allocated GPUs: index, uuid, memory (bytes, 0: all), shared, share (thousandths), node (null: "
          "`node`)" },
        make_granted },
    { { "ranks", "array|null",
          "on several nodes, for each rank: rank, node, gpus, state, ended_by, exit_code, log, "
          "unreachable_since" },
        make_parts },
    { { "submitted_at", "string", "RFC 3339, UTC" }, make_submitted_at },
    { { "started_at", "string|null", "start of the command" }, make_started_at },
    { { "ended_at", "string|null", "end of the job" }, make_ended_at },
    { { "wait_seconds", "number", "from submit to start, so far" }, make_wait_seconds },
    { { "run_seconds", "number|null",
          "from start to end, so far; of an early start, from when it had its GPUs" },
        make_run_seconds },
    { { "exit_code", "integer|null", "exit status, or 128 + signal" }, make_exit_code },
    { { "signal", "integer|null", "the signal that ended it" }, make_signal },
    { { "ended_by", "string|null",
          "exit, signal, cancelled, start_failed, setup_failed, unknown, reboot, time_limit, deadline,"
          " dependency, oom, gpu_fault, idle_timeout, released, node_lost, gpu_oom,"
          " gpu_mem, budget" },
        make_ended_by },
    { { "message", "string|null", "what went wrong, in words" }, make_message },
    { { "log", "string|null", "output file, on its node" }, make_log },
    { { "log_bytes", "integer|null", "size of the output, if ended" }, make_log_bytes },
    { { "cpu_seconds", "number|null", "user + system time, if ended" }, make_cpu_seconds },
    { { "max_rss_bytes", "integer|null", "largest memory of one process, if ended" }, make_max_rss },
    { { "progress", "number|null", "progress reported by the job, 0 to 1" }, make_progress },
    { { "status", "string|null", "status reported by the job" }, make_status },
    { { "checkpointed_at", "string|null", "time of its last report that work is saved" },
        make_checkpointed_at },
    { { "usage", "object|null", "use of its GPUs: see [usage](#usage)" }, make_usage },
    { { "position", "integer|null",
          "place in the queue, 1 is next; null while a limit, a hold, a dependency or a begin time keeps it "
          "out of the queue" },
        make_position },
    { { "reason", "string|null",
          "why it waits in the queue: the first `code` of [why](#why), a closed list; null in other states" },
        make_reason },
    { { "reason_text", "string|null",
          "the same as a sentence; for a job that has been starting or stopping for long, what it is waiting "
          "for" },
        make_reason_text },
    { { "eta", "string|null", "expected start" }, make_eta },
    { { "eta_from", "string|null", "a tenth of such jobs starts before this" }, make_eta_from },
    { { "eta_until", "string|null", "a tenth of such jobs starts after this" }, make_eta_until },
    { { "eta_latest", "string|null", "latest start expected" }, make_eta_latest },
    { { "expected_end", "string|null",
          "expected end, by the jobs like it, of one that has its GPUs or an `eta`; expected starts rest on "
          "it" },
        make_expected_end },
    { { "stopped_by", "string|null", "user who cancelled it" }, make_stopped_by },
    { { "token", "integer|null", "number of the token it was submitted with" }, make_token },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What the job asks for, under the names by which it was requested. */
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

static void add_members(const struct json_job_view *view, struct json_members *members)
{
    for (size_t i = 0; i < ROWS; i++)
        json_members_add(members, rows[i].key.name, rows[i].make(view));
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
