/* SPDX-License-Identifier: MIT */
/* One row per member, with the types of events that have it. */
#include "wire/json_event.h"

#include <stdbool.h>
#include <stddef.h>

#include "job/cluster_change.h"
#include "job/idle.h"
#include "job/launch.h"
#include "job/step.h"
#include "wire/json_job.h"
#include "wire/json_record.h"
#include "wire/json_text.h"

/* What a row can depend on besides the type: bits beyond those of the types. */
#define BY_USER       (UINT64_C(1) << EVENT_TYPES)       // parked or preempted on request
#define ATTEMPT_ENDED (UINT64_C(1) << (EVENT_TYPES + 1)) // requeued after an attempt
_Static_assert(EVENT_TYPES + 2 <= 64, "each type has a bit");

struct row {
    uint64_t types; // of the events that have it: bits
    struct record_field field;
    json_t *(*make)(const struct job_event *event, struct usernames *names); // NULL: the field
    bool is_optional;                                                        // omitted if it is null
};

static json_t *make_user(const struct job_event *event, struct usernames *names)
{
    return json_text_string(usernames_name(names, event->uid));
}

static json_t *make_granted(const struct job_event *event, struct usernames *names)
{
    return json_job_grants(&event->gpus);
}

static json_t *make_early(const struct job_event *event, struct usernames *names)
{
    return event->is_early != 0 ? json_true() : json_null();
}

static json_t *make_end(const struct job_event *event, struct usernames *names)
{
    return json_string(job_end_name((enum job_end)event->end));
}

static json_t *make_stop_reason(const struct job_event *event, struct usernames *names)
{
    enum job_end reason = event->reason != END_NONE ? (enum job_end)event->reason : END_CANCELLED;
    return json_string(job_end_name(reason));
}

static json_t *make_hold(const struct job_event *event, struct usernames *names)
{
    return json_text_string(json_job_hold(event->hold));
}

static json_t *make_idle(const struct job_event *event, struct usernames *names)
{
    return json_text_string(idle_level_name(event->idle_level));
}

static json_t *make_requeue_cause(const struct job_event *event, struct usernames *names)
{
    return json_string(requeue_cause_name((enum requeue_cause)event->cause));
}

static json_t *make_park_cause(const struct job_event *event, struct usernames *names)
{
    return json_string(park_cause_name(event->park_cause));
}

static json_t *make_scope(const struct job_event *event, struct usernames *names)
{
    return json_string(signal_scope_name(event->scope));
}

/* What an attempt used is known as far as it was measured: one whose node was lost has no figures. */
static bool is_measured(const struct job_event *event)
{
    return event->end != END_NODE_LOST && event->end != END_REBOOT && event->end != END_UNKNOWN &&
           event->end != END_START_FAILED;
}

static json_t *make_cpu_seconds(const struct job_event *event, struct usernames *names)
{
    return is_measured(event) ? json_text_seconds((int64_t)event->cpu_ms) : json_null();
}

static json_t *make_max_rss(const struct job_event *event, struct usernames *names)
{
    bool is_known = is_measured(event) && event->max_rss > 0;
    return is_known ? json_integer((json_int_t)event->max_rss) : json_null();
}

/* --- the table --- */

#define OF(type)    (UINT64_C(1) << EVENT_##type)
#define ALLOCATIONS (OF(ALLOCATED) | OF(RESTORING) | OF(INHERITS))
#define REQUEUES    (OF(PREEMPTED) | OF(REQUEUED))
#define ELEMENTS    (OF(SPLIT) | OF(MEMBER))
#define REQUESTS                                                                                             \
    (OF(SUBMITTED) | OF(STOP) | OF(EDITED) | OF(HELD) | OF(RELEASED) | OF(SUSPENDED) | OF(CONTINUED) |       \
        OF(SIGNALLED) | OF(UNPARK))
#define REMARKS (OF(RETURNED) | REQUEUES | OF(IDLE) | OF(PARKED) | OF(UNPARKED) | OF(RECONCILED))

#define MEMBER_OF(key_, member_, ...)                                                                        \
    .field = { .name = (key_), .offset = offsetof(struct job_event, member_), .kind = RECORD_##__VA_ARGS__ }
#define NUMBER(key_, kind_, member_)  MEMBER_OF(key_, member_, kind_, .has_zero = true)
#define OR_NULL(key_, kind_, member_) MEMBER_OF(key_, member_, kind_)
#define OTHER(key_, maker_)           .field.name = (key_), .make = make_##maker_

/* In the order in which they are written. */
static const struct row rows[] = {
    { REQUESTS, OTHER("user", user) },
    { OF(STOP), OTHER("reason", stop_reason) },
    { OF(HELD) | OF(RELEASED), OTHER("hold", hold) },
    { OF(SIGNALLED), NUMBER("signal", U32, sent) },
    { OF(SIGNALLED), OTHER("to", scope) },
    { ALLOCATIONS, OR_NULL("node", STRING, node) },
    { ALLOCATIONS, OTHER("granted", granted) },
    { ALLOCATIONS, OTHER("early", early), .is_optional = true },
    { ALLOCATIONS, OR_NULL("behind", U64, behind), .is_optional = true },
    { OF(STARTED), OR_NULL("message", STRING, text), .is_optional = true },
    { OF(IDLE), OTHER("idle", idle) },
    { OF(IDLE), NUMBER("idle_s", DURATION, idle_ms) },
    { REMARKS, OR_NULL("message", STRING, text) },
    { OF(PARKED), OR_NULL("gpu_bytes", U64, park_bytes) },
    { REQUEUES, OTHER("cause", requeue_cause) },
    { REQUEUES | OF(RETURNED), OR_NULL("not_before", TIME, retry_ms) },
    { OF(PREEMPTED), OR_NULL("due_to", U64, park_guest), .is_optional = true },
    { OF(PARK), OTHER("cause", park_cause) },
    { OF(PARK), OR_NULL("return_at", TIME, park_return_ms) },
    { OF(PARK), OR_NULL("guest", U64, park_guest) },
    { BY_USER, OTHER("user", user) },
    { ELEMENTS, NUMBER("element", U64, element) },
    { ELEMENTS, NUMBER("array_index", U32, array_index) },
    { OF(ENDED) | OF(MEMBER) | ATTEMPT_ENDED, OTHER("ended_by", end) },
    { OF(ENDED) | OF(MEMBER) | ATTEMPT_ENDED, NUMBER("exit_code", I32, exit_code) },
    { OF(ENDED), OR_NULL("signal", U32, signal) },
    { OF(ENDED) | ATTEMPT_ENDED, NUMBER("run_seconds", DURATION, run_ms) },
    { OF(ENDED) | ATTEMPT_ENDED, OR_NULL("parked_seconds", DURATION, parked_ms), .is_optional = true },
    { ATTEMPT_ENDED, OTHER("cpu_seconds", cpu_seconds) },
    { ATTEMPT_ENDED, OTHER("max_rss_bytes", max_rss) },
    { ATTEMPT_ENDED, OR_NULL("log", STRING, log_path) },
    { OF(ENDED), OR_NULL("message", STRING, text) },
    { OF(ENDED) | ATTEMPT_ENDED, OR_NULL("signals", STRING, signals), .is_optional = true },
};

static uint64_t bits_of(const struct job_event *event)
{
    bool is_asked = (event->type == EVENT_PREEMPTED && event->cause == REQUEUE_ASKED) ||
                    (event->type == EVENT_PARK && event->park_cause == PARK_ASKED);
    bool has_ended = event->type == EVENT_REQUEUED && event->end != END_NONE;
    return UINT64_C(1) << event->type | (is_asked ? BY_USER : 0) | (has_ended ? ATTEMPT_ENDED : 0);
}

static void add_rows(json_t *object, const struct job_event *event, struct usernames *names)
{
    uint64_t bits = bits_of(event);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((rows[i].types & bits) == 0)
            continue;
        json_t *value =
            rows[i].make != NULL ? rows[i].make(event, names) : json_record_answer(&rows[i].field, event);
        if (!rows[i].is_optional || !json_is_null(value))
            (void)json_object_set_new(object, rows[i].field.name, value);
    }
}

/* --- members of a step and of a change --- */

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

/* --- the state after an event --- */

/* Only for a job that waits or runs. */
static const char *after_edit(const struct job_event *event, const struct job *job)
{
    return job_state_name(event->attempt > 0 ? JOB_RUNNING : JOB_QUEUED);
}

/* A job that returns to the queue is held and released with the number of its attempt. */
static const char *after_hold(const struct job_event *event, const struct job *job)
{
    return job_state_name(event->attempt != 0 ? JOB_STOPPING : JOB_QUEUED);
}

/* Behind another job, it still waits for the GPUs. */
static const char *after_allocation(const struct job_event *event, const struct job *job)
{
    return job_state_name(event->behind != 0 ? JOB_QUEUED : JOB_STARTING);
}

static const char *after_start(const struct job_event *event, const struct job *job)
{
    if (job == NULL)
        return NULL;
    return job_state_name(job->state == JOB_STOPPING ? JOB_STOPPING : JOB_RUNNING);
}

/* True if this event, and not a later one, was the job's end. */
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

static const char *state_now(const struct job_event *event, const struct job *job)
{
    return job != NULL ? json_job_state(job) : NULL;
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
    enum job_state state;                                                       // always this one
    const char *(*after)(const struct job_event *event, const struct job *job); // or the one it returns
    void (*add)(json_t *object, const struct job_event *event, struct usernames *names); // besides the rows
} types[EVENT_TYPES] = {
    [EVENT_SUBMITTED] = { JOB_QUEUED },
    [EVENT_ALLOCATED] = { .after = after_allocation },
    [EVENT_STARTED] = { .after = after_start },
    [EVENT_STOP] = { .after = after_stop },
    [EVENT_RETURNED] = { .after = after_return },
    [EVENT_ENDED] = { .after = after_end },
    [EVENT_EDITED] = { .after = after_edit },
    [EVENT_HELD] = { .after = after_hold },
    [EVENT_RELEASED] = { .after = after_hold },
    [EVENT_PREEMPTED] = { JOB_STOPPING },
    [EVENT_REQUEUED] = { JOB_QUEUED },
    [EVENT_SPLIT] = { JOB_QUEUED },
    [EVENT_MEMBER] = { .after = after_member },
    [EVENT_CLUSTER] = { .add = add_change },
    [EVENT_IDLE] = { JOB_RUNNING },
    [EVENT_SUSPENDED] = { JOB_RUNNING },
    [EVENT_CONTINUED] = { JOB_RUNNING },
    [EVENT_SIGNALLED] = { JOB_RUNNING },
    [EVENT_STEP_STARTED] = { .after = state_now, .add = add_step },
    [EVENT_STEP_ENDED] = { .after = state_now, .add = add_step_end },
    [EVENT_PARK] = { JOB_RUNNING },
    [EVENT_PARKED] = { JOB_RUNNING },
    [EVENT_UNPARK] = { JOB_RUNNING },
    [EVENT_RESTORING] = { JOB_RUNNING },
    [EVENT_UNPARKED] = { JOB_RUNNING },
    [EVENT_RECONCILED] = { JOB_RUNNING },
    [EVENT_INHERITS] = { .after = state_now },
};

static const char *state_after(const struct job_event *event, const struct job *job)
{
    if (types[event->type].after != NULL)
        return types[event->type].after(event, job);
    enum job_state state = types[event->type].state;
    return state != JOB_NEW ? job_state_name(state) : NULL;
}

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
    (void)json_object_set_new(object, "state", json_text_string(state_after(event, job)));
    add_rows(object, event, names);
    if (types[event->type].add != NULL)
        types[event->type].add(object, event, names);
    return object;
}
