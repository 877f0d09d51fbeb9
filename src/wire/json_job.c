/* SPDX-License-Identifier: MIT */
/* One row per key: its name, its type, what it means and how it is made. The documentation walks the rows. */
#include "wire/json_job.h"

#include <stdbool.h>
#include <string.h>

#include "base/progress.h"
#include "job/alias.h"
#include "job/idle.h"
#include "wire/json_parts.h"
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

/* True when the exit code and signal of the command are known. */
static bool has_status(const struct job *job)
{
    if (job->ask->lease_pid != 0)
        return false; // only the parent of a process knows
    switch (job->end) {
    case END_EXIT:
    case END_SIGNAL:
    case END_OOM:
    case END_GPU_FAULT:
    case END_START_FAILED:
    case END_SETUP_FAILED: return is_over(job);
    case END_IDLE_TIMEOUT:
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

static json_t *make_priority(const struct json_job_view *view)
{
    return json_integer(view->job->ask->priority);
}

static json_t *make_own_priority(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->own_priority);
}

static json_t *make_gpus(const struct json_job_view *view)
{
    return json_integer(view->job->ask->gpus);
}

static json_t *make_gpu_ids(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->gpu_ids);
}

static json_t *make_gpu_mem(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->gpu_mem);
}

static json_t *make_gpu_share(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->gpu_share);
}

static json_t *make_gpu_model(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->gpu_model);
}

static json_t *make_gpu_allow(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->gpu_allow);
}

static json_t *make_cpus(const struct json_job_view *view)
{
    uint32_t milli = view->job->ask->cpu_milli;
    return milli != 0 ? json_text_milli(milli) : json_null();
}

static json_t *make_memory(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->memory);
}

static json_t *make_nodes(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->nodes);
}

static json_t *make_gpus_per_node(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->gpus_per_node);
}

static json_t *make_time_limit_s(const struct json_job_view *view)
{
    int64_t ms = view->job->ask->time_limit_ms;
    return ms != 0 ? json_text_seconds(ms) : json_null();
}

static json_t *make_begin_at(const struct json_job_view *view)
{
    return json_text_time(view->job->ask->begin_ms);
}

static json_t *make_deadline_at(const struct json_job_view *view)
{
    return json_text_time(view->job->ask->deadline_ms);
}

static json_t *make_after(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->after);
}

static json_t *make_array(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->array);
}

static json_t *make_array_left(const struct json_job_view *view)
{
    return json_text_string(view->job->array_left);
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

static json_t *make_array_index(const struct json_job_view *view)
{
    return view->job->array_job != 0 ? json_integer(view->job->array_index) : json_null();
}

static json_t *make_cancel_if_never(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->cancel_if_never);
}

static json_t *make_preemptible(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->preemptible);
}

static json_t *make_idle_timeout_s(const struct json_job_view *view)
{
    int64_t ms = view->job->ask->idle_timeout_ms;
    return ms != 0 ? json_text_seconds(ms) : json_null();
}

static json_t *make_tty_idle_s(const struct json_job_view *view)
{
    int64_t ms = view->job->ask->tty_idle_ms;
    return ms != 0 ? json_text_seconds(ms) : json_null();
}

static json_t *make_idle_ok(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->idle_ok);
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

static json_t *make_unreachable_since(const struct json_job_view *view)
{
    return json_text_time(view->unreachable_ms);
}

static json_t *make_grace_s(const struct json_job_view *view)
{
    int64_t ms = view->job->ask->grace_ms;
    return ms != 0 ? json_text_seconds(ms) : json_null();
}

static json_t *make_warn_signal(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->warn_signal);
}

static json_t *make_checkpoint(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->checkpoint);
}

static json_t *make_requeue_on_timeout(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->requeue_on_timeout);
}

static json_t *make_requeue_on_node_lost(const struct json_job_view *view)
{
    return json_boolean(view->job->ask->requeue_on_node_lost);
}

static json_t *make_max_requeues(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->max_requeues);
}

static json_t *make_retry(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->retry);
}

static json_t *make_retry_on(const struct json_job_view *view)
{
    return json_text_string(view->job->ask->retry_on);
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
    return json_parts_write(view->job, view->parts);
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
    int64_t until_ms = view->now_wall_ms;
    if (job->started_ms != 0)
        until_ms = job->started_ms;
    else if (is_over(job))
        until_ms = job->ended_ms;
    return json_text_seconds(until_ms - job->submitted_ms);
}

static json_t *make_run_seconds(const struct json_job_view *view)
{
    const struct job *job = view->job;
    int64_t ms = is_over(job) ? job_run(job)->run_ms : view->now_wall_ms - job->started_ms;
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
    return has_run(view->job) ? json_text_seconds((int64_t)job_run(view->job)->cpu_ms) : json_null();
}

static json_t *make_max_rss(const struct json_job_view *view)
{
    return has_run(view->job) ? json_integer((json_int_t)job_run(view->job)->max_rss) : json_null();
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

static json_t *make_reason(const struct json_job_view *view)
{
    bool is_known = view->job->state == JOB_QUEUED && view->reason != NULL && view->reason[0] != '\0';
    return json_text_string(is_known ? view->reason : NULL);
}

static json_t *make_reason_text(const struct json_job_view *view)
{
    bool has_one = view->job->state != JOB_RUNNING && view->job->state != JOB_DONE;
    bool is_known = has_one && view->reason_text != NULL && view->reason_text[0] != '\0';
    return json_text_string(is_known ? view->reason_text : NULL);
}

static json_t *make_eta(const struct json_job_view *view)
{
    return json_text_time(view->job->state == JOB_QUEUED ? view->eta_ms : 0);
}

static json_t *make_eta_latest(const struct json_job_view *view)
{
    return json_text_time(view->job->state == JOB_QUEUED ? view->eta_latest_ms : 0);
}

static json_t *make_lease_pid(const struct json_job_view *view)
{
    return json_or_null(view->job->ask->lease_pid);
}

static json_t *make_stopped_by(const struct json_job_view *view)
{
    const struct job *job = view->job;
    /* A lease whose process ended while it waited was cancelled by nobody. */
    bool is_lost = job->ask->lease_pid != 0 && job->stop_reason == END_NONE;
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
    { { "priority", "integer", "higher runs first" }, make_priority },
    { { "own_priority", "boolean", "the priority orders its owner's jobs only" }, make_own_priority },
    { { "gpus", "integer", "number of GPUs requested" }, make_gpus },
    { { "gpu_ids", "string|null", "exactly these GPUs" }, make_gpu_ids },
    { { "gpu_mem", "integer|null", "bytes requested on each GPU" }, make_gpu_mem },
    { { "gpu_share", "integer|null", "thousandths of a GPU, if it shares one" }, make_gpu_share },
    { { "gpu_model", "string|null", "only GPUs of this model" }, make_gpu_model },
    { { "gpu_allow", "string|null", "only GPUs with these indexes" }, make_gpu_allow },
    { { "cpus", "number|null", "CPUs requested per node" }, make_cpus },
    { { "memory", "integer|null", "bytes of host memory requested per node" }, make_memory },
    { { "nodes", "integer|null", "exact number of nodes" }, make_nodes },
    { { "gpus_per_node", "integer|null", "GPUs per node" }, make_gpus_per_node },
    { { "time_limit_s", "number|null", "time limit in seconds" }, make_time_limit_s },
    { { "begin_at", "string|null", "not before this time" }, make_begin_at },
    { { "deadline_at", "string|null", "latest start" }, make_deadline_at },
    { { "after", "string|null", "jobs it depends on, each with ok, any or fail" }, make_after },
    { { "array", "string|null", "indexes of its elements, as requested" }, make_array },
    { { "array_left", "string|null", "indexes that are not separate jobs yet" }, make_array_left },
    { { "array_job", "integer|null", "the array it is an element of" }, make_array_job },
    { { "array_index", "integer|null", "its index in that array" }, make_array_index },
    { { "cancel_if_never", "boolean", "ended when its dependency can never be met" }, make_cancel_if_never },
    { { "preemptible", "boolean", "may be preempted by other jobs" }, make_preemptible },
    { { "idle_timeout_s", "number|null", "ended if it uses none of its GPUs for this many seconds" },
        make_idle_timeout_s },
    { { "tty_idle_s", "number|null", "ended after this many seconds without terminal input or output" },
        make_tty_idle_s },
    { { "idle_ok", "boolean", "exempt from idle handling" }, make_idle_ok },
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
    { { "unreachable_since", "string|null",
          "it is running, and its node has been unreachable since this time" },
        make_unreachable_since },
    { { "grace_s", "number|null", "seconds between SIGTERM and SIGKILL" }, make_grace_s },
    { { "warn_signal", "string|null", "signal sent before the time limit" }, make_warn_signal },
    { { "checkpoint", "boolean", "saves its work on request and reports it" }, make_checkpoint },
    { { "requeue_on_timeout", "boolean", "requeued at its time limit" }, make_requeue_on_timeout },
    { { "requeue_on_node_lost", "boolean", "requeued if its node is lost or reboots" },
        make_requeue_on_node_lost },
    { { "max_requeues", "integer|null", "maximum number of requeues for each cause" }, make_max_requeues },
    { { "retry", "integer|null", "number of retries after failures" }, make_retry },
    { { "retry_on", "string|null", "exit codes after which it is retried" }, make_retry_on },
    { { "command", "string", "one line in shell syntax, cut at 160 bytes" }, make_command },
    { { "node", "string|null", "node of its latest attempt" }, make_node },
    { { "granted", "array",
          "allocated GPUs: index, uuid, memory (bytes, 0: all), shared, share (thousandths), node (null: "
          "`node`)" },
        make_granted },
    { { "parts", "array|null",
          "on several nodes, for each rank: rank, node, gpus, state, ended_by, exit_code, log, "
          "unreachable_since" },
        make_parts },
    { { "submitted_at", "string", "RFC 3339, UTC" }, make_submitted_at },
    { { "started_at", "string|null", "start of the command" }, make_started_at },
    { { "ended_at", "string|null", "end of the job" }, make_ended_at },
    { { "wait_seconds", "number", "from submit to start, so far" }, make_wait_seconds },
    { { "run_seconds", "number|null", "from start to end, so far" }, make_run_seconds },
    { { "exit_code", "integer|null", "exit status, or 128 + signal" }, make_exit_code },
    { { "signal", "integer|null", "the signal that ended it" }, make_signal },
    { { "ended_by", "string|null",
          "exit, signal, cancelled, start_failed, setup_failed, unknown, reboot, time_limit, deadline,"
          " dependency, oom, gpu_fault, idle_timeout, released, node_lost" },
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
    { { "reason", "string|null", "why it waits: the first `code` of [why](#why)" }, make_reason },
    { { "reason_text", "string|null", "the same in words; or what a long start or stop waits for" },
        make_reason_text },
    { { "eta", "string|null", "expected start" }, make_eta },
    { { "eta_latest", "string|null", "latest start expected" }, make_eta_latest },
    { { "stopped_by", "string|null", "user who cancelled it" }, make_stopped_by },
    { { "lease_pid", "integer|null", "process id of the [adopted process](#adopted-processes)" },
        make_lease_pid },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

json_t *json_job_write(const struct json_job_view *view)
{
    json_t *object = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        json_t *value = rows[i].make(view);
        if (!view->is_sparse || !json_is_null(value)) // null is one value that nobody owns
            (void)json_object_set_new_nocheck(object, rows[i].key.name, value);
    }
    return object;
}

size_t json_job_count_keys(void)
{
    return ROWS;
}

struct json_job_key json_job_key(size_t i)
{
    return rows[i].key;
}
