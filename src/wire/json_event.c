/* SPDX-License-Identifier: MIT */
/* One function per type of event writes its fields; the rest is common to all. */
#include "wire/json_event.h"

#include <stdbool.h>

#include "job/cluster_change.h"
#include "job/idle.h"
#include "job/launch.h"
#include "job/step.h"
#include "wire/json_job.h"
#include "wire/json_text.h"

static void add_user(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "user", json_text_string(usernames_name(names, event->uid)));
}

static void add_allocation(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "node", json_text_string(event->node));
    (void)json_object_set_new(object, "granted", json_job_grants(&event->gpus));
    if (event->is_early != 0)
        (void)json_object_set_new(object, "early", json_true());
}

static void add_start(json_t *object, const struct job_event *event, struct usernames *names)
{
    if (event->text != NULL)
        (void)json_object_set_new(object, "message", json_text_string(event->text));
}

static void add_reason(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "message", json_text_string(event->text));
}

/* Who was signalled in the attempt: most jobs end by themselves. */
static void add_signals(json_t *object, const struct job_event *event)
{
    if (event->signals != NULL)
        (void)json_object_set_new(object, "signals", json_text_string(event->signals));
}

static void add_end(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "ended_by", json_string(job_end_name((enum job_end)event->end)));
    (void)json_object_set_new(object, "exit_code", json_integer(event->exit_code));
    (void)json_object_set_new(
        object, "signal", event->signal != 0 ? json_integer(event->signal) : json_null());
    (void)json_object_set_new(object, "run_seconds", json_text_seconds(event->run_ms));
    (void)json_object_set_new(object, "message", json_text_string(event->text));
    add_signals(object, event);
}

static void add_stop(json_t *object, const struct job_event *event, struct usernames *names)
{
    enum job_end reason = event->reason != END_NONE ? (enum job_end)event->reason : END_CANCELLED;
    add_user(object, event, names);
    (void)json_object_set_new(object, "reason", json_string(job_end_name(reason)));
}

static void add_hold(json_t *object, const struct job_event *event, struct usernames *names)
{
    add_user(object, event, names);
    (void)json_object_set_new(object, "hold", json_text_string(json_job_hold(event->hold)));
}

static void add_element(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "element", json_integer((json_int_t)event->element));
    (void)json_object_set_new(object, "array_index", json_integer(event->array_index));
}

static void add_member(json_t *object, const struct job_event *event, struct usernames *names)
{
    add_element(object, event, names);
    (void)json_object_set_new(object, "ended_by", json_string(job_end_name((enum job_end)event->end)));
    (void)json_object_set_new(object, "exit_code", json_integer(event->exit_code));
}

static void add_idle(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "idle", json_text_string(idle_level_name(event->idle_level)));
    (void)json_object_set_new(object, "idle_s", json_text_seconds(event->idle_ms));
    (void)json_object_set_new(object, "message", json_text_string(event->text));
}

/* What the attempt used, as far as it was measured: one whose node was lost has no figures. */
static void add_used(json_t *object, const struct job_event *event)
{
    bool is_measured = event->end != END_NODE_LOST && event->end != END_REBOOT && event->end != END_UNKNOWN &&
                       event->end != END_START_FAILED;
    (void)json_object_set_new(
        object, "cpu_seconds", is_measured ? json_text_seconds((int64_t)event->cpu_ms) : json_null());
    (void)json_object_set_new(object, "max_rss_bytes",
        is_measured && event->max_rss > 0 ? json_integer((json_int_t)event->max_rss) : json_null());
}

static void add_requeue(json_t *object, const struct job_event *event, struct usernames *names)
{
    add_reason(object, event, names);
    (void)json_object_set_new(
        object, "cause", json_string(requeue_cause_name((enum requeue_cause)event->cause)));
    (void)json_object_set_new(object, "not_before", json_text_time(event->retry_ms));
    if (event->cause == REQUEUE_ASKED && event->type == EVENT_PREEMPTED)
        add_user(object, event, names);
    if (event->type == EVENT_REQUEUED && event->end != END_NONE) {
        (void)json_object_set_new(object, "ended_by", json_string(job_end_name((enum job_end)event->end)));
        (void)json_object_set_new(object, "exit_code", json_integer(event->exit_code));
        (void)json_object_set_new(object, "run_seconds", json_text_seconds(event->run_ms));
        add_used(object, event);
        (void)json_object_set_new(object, "log", json_text_string(event->log_path));
        add_signals(object, event);
    }
}

static void add_return(json_t *object, const struct job_event *event, struct usernames *names)
{
    add_reason(object, event, names);
    (void)json_object_set_new(object, "not_before", json_text_time(event->retry_ms));
}

static void add_park(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "cause", json_string(park_cause_name(event->park_cause)));
    (void)json_object_set_new(object, "return_at", json_text_time(event->park_return_ms));
    (void)json_object_set_new(
        object, "guest", event->park_guest != 0 ? json_integer((json_int_t)event->park_guest) : json_null());
    if (event->park_cause == PARK_ASKED)
        add_user(object, event, names);
}

static void add_parked(json_t *object, const struct job_event *event, struct usernames *names)
{
    add_reason(object, event, names);
    (void)json_object_set_new(object, "gpu_bytes",
        event->park_bytes > 0 ? json_integer((json_int_t)event->park_bytes) : json_null());
}

static void add_signal(json_t *object, const struct job_event *event, struct usernames *names)
{
    add_user(object, event, names);
    (void)json_object_set_new(object, "signal", json_integer(event->sent));
    (void)json_object_set_new(object, "to", json_string(signal_scope_name(event->scope)));
}

static void add_step(json_t *object, const struct job_event *event, struct usernames *names)
{
    const struct job_step *step = event->steps.items;
    if (event->steps.count == 0)
        return;
    (void)json_object_set_new(object, "step", json_integer(step->id));
    (void)json_object_set_new(object, "name", json_text_string(step->name));
    (void)json_object_set_new(object, "tasks", json_integer(job_step_tasks(step)));
}

static void add_step_end(json_t *object, const struct job_event *event, struct usernames *names)
{
    const struct job_step *step = event->steps.items;
    if (event->steps.count == 0)
        return;
    (void)json_object_set_new(object, "step", json_integer(step->id));
    (void)json_object_set_new(object, "ended_by", json_string(job_end_name((enum job_end)step->end)));
    (void)json_object_set_new(object, "exit_code", json_integer(step->exit_code));
    (void)json_object_set_new(object, "signal", step->signal != 0 ? json_integer(step->signal) : json_null());
}

static void add_change(json_t *object, const struct job_event *event, struct usernames *names)
{
    const struct cluster_change *change = event->change.items;
    if (event->change.count == 0)
        return;
    (void)json_object_set_new(
        object, "change", json_string(change_kind_name((enum change_kind)change->kind)));
    (void)json_object_set_new(object, "user", json_text_string(usernames_name(names, change->uid)));
    (void)json_object_set_new(object, "node", json_text_string(change->node));
    (void)json_object_set_new(object, "uuid", json_text_string(change->uuid));
    (void)json_object_set_new(object, "message", json_text_string(change->text));
    if (change->kind == CHANGE_GPU_PAUSE)
        (void)json_object_set_new(object, "released", json_boolean(change->is_released));
    if (change->kind == CHANGE_NODE_UP)
        (void)json_object_set_new(object, "came", json_boolean(change->has_come));
    if (change->kind == CHANGE_NODE_BAR && change->uid == UINT32_MAX) // all users
        (void)json_object_set_new(object, "user", json_null());
    if (change->kind == CHANGE_NODE_BAR)
        (void)json_object_set_new(
            object, "until", change->until_ms > 0 ? json_text_time(change->until_ms) : json_null());
    if (change->kind == CHANGE_JOB_REFUSED)
        (void)json_object_set_new(object, "refused_job", json_integer((json_int_t)change->job));
    if (change->kind == CHANGE_PARK_BAR)
        (void)json_object_set_new(object, "barred_job", json_integer((json_int_t)change->job));
    if (change->kind == CHANGE_NODE_UNREACHABLE)
        (void)json_object_set_new(object, "since", json_text_time(change->from_ms));
}

/* Only of a job that waits or runs. */
static const char *after_edit(const struct job_event *event, const struct job *job)
{
    return job_state_name(event->attempt > 0 ? JOB_RUNNING : JOB_QUEUED);
}

static const char *now_queued(const struct job_event *event, const struct job *job)
{
    return job_state_name(JOB_QUEUED);
}

/* A job that goes back to the queue is held and released with the number of its attempt. */
static const char *after_hold(const struct job_event *event, const struct job *job)
{
    return job_state_name(event->attempt != 0 ? JOB_STOPPING : JOB_QUEUED);
}

static const char *after_allocation(const struct job_event *event, const struct job *job)
{
    return job_state_name(JOB_STARTING);
}

static const char *after_start(const struct job_event *event, const struct job *job)
{
    if (job == NULL)
        return NULL;
    return job_state_name(job->state == JOB_STOPPING ? JOB_STOPPING : JOB_RUNNING);
}

/* True when this very event, and not a later one, was the job's end. */
static bool was_end(const struct job_event *event, const struct job *job)
{
    return job->state == JOB_DONE && job->end == job->stop_reason && job->ended_ms == event->wall_ms;
}

static const char *after_stop(const struct job_event *event, const struct job *job)
{
    if (job == NULL)
        return NULL;
    if (was_end(event, job))
        return json_job_state(job);
    return job_state_name(job_is_array(job) ? JOB_QUEUED : JOB_STOPPING);
}

static const char *after_member(const struct job_event *event, const struct job *job)
{
    if (job == NULL)
        return NULL;
    bool is_last = job->state == JOB_DONE && job->ended_ms == event->wall_ms;
    return is_last ? json_job_state(job) : job_state_name(JOB_QUEUED);
}

static const char *after_preemption(const struct job_event *event, const struct job *job)
{
    return job_state_name(JOB_STOPPING);
}

static const char *still_running(const struct job_event *event, const struct job *job)
{
    return job_state_name(JOB_RUNNING);
}

static const char *state_now(const struct job_event *event, const struct job *job)
{
    return job != NULL ? json_job_state(job) : NULL;
}

static const char *no_state(const struct job_event *event, const struct job *job)
{
    return NULL;
}

static const char *after_return(const struct job_event *event, const struct job *job)
{
    if (job == NULL)
        return NULL;
    return was_end(event, job) ? json_job_state(job) : job_state_name(JOB_QUEUED);
}

static const char *after_end(const struct job_event *event, const struct job *job)
{
    return json_job_end_state((enum job_end)event->end, event->exit_code);
}

static const struct {
    const char *(*state)(const struct job_event *event, const struct job *job);
    void (*add)(json_t *object, const struct job_event *event, struct usernames *names);
} types[EVENT_TYPES] = {
    [EVENT_SUBMITTED] = { now_queued, add_user },
    [EVENT_ALLOCATED] = { after_allocation, add_allocation },
    [EVENT_STARTED] = { after_start, add_start },
    [EVENT_STOP] = { after_stop, add_stop },
    [EVENT_RETURNED] = { after_return, add_return },
    [EVENT_ENDED] = { after_end, add_end },
    [EVENT_EDITED] = { after_edit, add_user },
    [EVENT_HELD] = { after_hold, add_hold },
    [EVENT_RELEASED] = { after_hold, add_hold },
    [EVENT_PREEMPTED] = { after_preemption, add_requeue },
    [EVENT_REQUEUED] = { now_queued, add_requeue },
    [EVENT_SPLIT] = { now_queued, add_element },
    [EVENT_MEMBER] = { after_member, add_member },
    [EVENT_CLUSTER] = { no_state, add_change },
    [EVENT_IDLE] = { still_running, add_idle },
    [EVENT_SUSPENDED] = { still_running, add_user },
    [EVENT_CONTINUED] = { still_running, add_user },
    [EVENT_SIGNALLED] = { still_running, add_signal },
    [EVENT_STEP_STARTED] = { state_now, add_step },
    [EVENT_STEP_ENDED] = { state_now, add_step_end },
    [EVENT_PARK] = { still_running, add_park },
    [EVENT_PARKED] = { still_running, add_parked },
    [EVENT_UNPARK] = { still_running, add_user },
    [EVENT_RESTORING] = { still_running, add_allocation },
    [EVENT_UNPARKED] = { still_running, add_reason },
    [EVENT_RECONCILED] = { still_running, add_reason },
};

json_t *json_event_write(const struct job_event *event, const struct job *job, struct usernames *names)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "seq", json_integer((json_int_t)event->seq));
    (void)json_object_set_new(object, "type", json_string(job_event_name((enum job_event_type)event->type)));
    (void)json_object_set_new(object, "job", json_integer((json_int_t)event->job));
    (void)json_object_set_new(object, "attempt", json_integer(event->attempt));
    (void)json_object_set_new(object, "at", json_text_time(event->wall_ms));
    if (event->type >= EVENT_TYPES)
        return object; // of a newer mgpu
    (void)json_object_set_new(object, "state", json_text_string(types[event->type].state(event, job)));
    if (types[event->type].add != NULL)
        types[event->type].add(object, event, names);
    return object;
}
