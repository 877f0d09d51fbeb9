/* SPDX-License-Identifier: MIT */
/*
 * Actions on a running job: signal, suspend, continue, park, requeue. Each is first an event, so the log
 * shows who requested it, and is sent to the agent when that is durable. For an array it applies to each
 * element for which it is possible.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/park.h"
#include "controller/core/split.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/array.h"
#include "job/behind.h"
#include "job/launch.h"
#include "job/slurm.h"

struct control {
    const char *done; // completes "cannot be"
    bool needs_node;  // its node must be connected
    bool (*is_possible)(const struct job *job);
    void (*act)(struct core *core, struct core_entry *entry, const struct identity *who, int64_t argument);
    int (*check)(const struct core *core, const struct job *job, struct error *err); // NULL: nothing more
};

static int check_job(
    const struct core *core, const struct control *control, const struct job *job, struct error *err)
{
    if (job->ask->adopted_pid != 0) {
        (void)error_set(err, -EINVAL,
            "job %" PRIu64 " is an adopted process, which mgpu did not start: it cannot be %s", job->id,
            control->done);
        return error_hint(err, "use kill -USR1 %u and so on instead", job->ask->adopted_pid);
    }
    int r = control->check != NULL && job->state == JOB_RUNNING ? control->check(core, job, err) : 0;
    if (r < 0)
        return r;
    if (!control->is_possible(job)) {
        (void)error_set(err, -EALREADY, "job %" PRIu64 " is %s: only a running job can be %s", job->id,
            job_state_name(job_shown_state(job)), control->done);
        return job->state == JOB_STOPPING ? err->code : error_hint(err, "mgpu show %" PRIu64, job->id);
    }
    for (size_t rank = 0; control->needs_node && rank < job_node_count(job); rank++) {
        const char *name = job_node_name(job, rank);
        const struct core_node *node = core_find_node(core, name);
        if (node != NULL && node->is_up)
            continue;
        (void)error_set(err, -EHOSTDOWN, "node %s of job %" PRIu64 " is not connected", name, job->id);
        return error_hint(err, "try again once it is connected: see mgpu nodes");
    }
    return 0;
}

/* Applies to all elements that allow it; the request is refused if none does. */
static int act_on_elements(struct core *core, const struct control *control, struct core_entry *array,
    const struct identity *who, int64_t argument, struct error *err)
{
    size_t count = 0;
    struct error ignored;
    struct core_entry *after = NULL;
    for (struct core_entry *member = core_extra(array)->members; member != NULL; member = after) {
        after = core_extra(member)->member_after;
        if (check_job(core, control, member->job, &ignored) < 0)
            continue;
        control->act(core, member, who, argument);
        count++;
    }
    if (count > 0)
        return 0;
    return error_set(
        err, -EALREADY, "no element of array %" PRIu64 " can be %s now", array->job->id, control->done);
}

static void control_job(struct core *core, const struct control *control, const struct identity *who,
    uint64_t id, int64_t argument, void *request)
{
    struct core_entry *entry = core_find(core, id);
    struct core_answer answer = { .job = id };
    answer.code = core_check_control(core, who, id, entry, &answer.err);
    if (answer.code == 0)
        answer.code = core_check_change(core, who, &answer.err);
    if (answer.code == 0 && job_is_array(entry->job))
        answer.code = act_on_elements(core, control, entry, who, argument, &answer.err);
    else if (answer.code == 0 && (answer.code = check_job(core, control, entry->job, &answer.err)) == 0)
        control->act(core, entry, who, argument);
    core_reply(core, request, &answer);
}

static bool is_running(const struct job *job)
{
    return job->state == JOB_RUNNING;
}

static void send_signal(
    struct core *core, struct core_entry *entry, const struct identity *who, int64_t argument)
{
    const struct job *job = entry->job;
    uint32_t signal = SIGNAL_NUMBER_OF((uint32_t)argument), scope = SIGNAL_SCOPE_OF((uint32_t)argument);
    /* Only sbatch has steps. */
    if (scope == SIGNAL_OTHERS && !slurm_is_batch(&job->ask->slurm))
        scope = SIGNAL_HANDLERS;
    struct job_event event = {
        .type = EVENT_SIGNALLED, .attempt = job->attempt, .uid = who->uid, .sent = signal, .scope = scope
    };
    core_change(core, entry, &event, NULL);
    core_defer(core, (struct deferred){ .kind = DEFERRED_SIGNAL,
                         .job = job->id,
                         .signal = { .id.job = job->id,
                             .id.attempt = job->attempt,
                             .token = job->token,
                             .signal = signal,
                             .scope = scope } });
}

/* --- park, unpark --- */

static bool is_parkable(const struct job *job)
{
    uint32_t phase = job_park(job)->phase;
    return job->state == JOB_RUNNING && (phase == PARK_NONE || phase == PARK_WAITING);
}

static bool is_unparkable(const struct job *job)
{
    return job->state == JOB_RUNNING && job_park(job)->phase == PARK_PARKED;
}

static void park(struct core *core, struct core_entry *entry, const struct identity *who, int64_t for_ms)
{
    struct job_event event = { .type = EVENT_PARK,
        .attempt = entry->job->attempt,
        .uid = who->uid,
        .park_cause = PARK_ASKED,
        .park_return_ms = for_ms > 0 ? core->now_ms + for_ms : 0 };
    core_change(core, entry, &event, NULL);
}

static void unpark(struct core *core, struct core_entry *entry, const struct identity *who, int64_t argument)
{
    struct job_event event = { .type = EVENT_UNPARK, .attempt = entry->job->attempt, .uid = who->uid };
    core_change(core, entry, &event, NULL);
}

static const struct control parking = { "parked", true, is_parkable, park, core_can_park };
static const struct control unparking = { "returned", false, is_unparkable, unpark, core_can_return };

void core_park(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    int64_t for_ms, void *request)
{
    core_begin(core, boot_ms, wall_ms);
    control_job(core, &parking, who, job, for_ms, request);
}

void core_unpark(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, void *request)
{
    core_begin(core, boot_ms, wall_ms);
    control_job(core, &unparking, who, job, 0, request);
}

/* --- suspend, continue --- */

static void suspend(struct core *core, struct core_entry *entry, const struct identity *who, int64_t argument)
{
    struct job_event event = {
        .type = EVENT_SUSPENDED, .attempt = entry->job->attempt, .uid = who->uid, .sent = SIGSTOP
    };
    if (job_run(entry->job)->suspended_ms == 0)
        core_change(core, entry, &event, NULL);
}

/* It returns by itself, or is on its way: a signal would have no effect until then. */
static int can_continue(const struct core *core, const struct job *job, struct error *err)
{
    const struct job_park *park = job_park(job);
    bool is_away = park->phase != PARK_NONE && park->phase != PARK_PARKED && park->is_early == 0;
    return is_away && job_run(job)->suspended_ms == 0 ? core_can_return(core, job, err) : 0;
}

/* A parked job returns. Processes stopped by other means are continued by the signal alone. */
static void resume_job(
    struct core *core, struct core_entry *entry, const struct identity *who, int64_t argument)
{
    struct job_event event = {
        .type = EVENT_CONTINUED, .attempt = entry->job->attempt, .uid = who->uid, .sent = SIGCONT
    };
    if (job_run(entry->job)->suspended_ms != 0)
        core_change(core, entry, &event, NULL);
    else if (is_unparkable(entry->job))
        unpark(core, entry, who, 0);
    else
        send_signal(core, entry, who, SIGCONT);
}

static const struct control suspending = { "suspended", false, is_running, suspend };
static const struct control continuing = { "continued", false, is_running, resume_job, can_continue };

void core_suspend(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, bool is_continue, void *request)
{
    core_begin(core, boot_ms, wall_ms);
    control_job(core, is_continue ? &continuing : &suspending, who, job, 0, request);
}

/* --- signals --- */

static const struct control signalling = { "signalled", true, is_running, send_signal };

void core_signal(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int signal, uint32_t scope, void *request)
{
    core_begin(core, boot_ms, wall_ms);
    const struct control *control = signal == SIGSTOP   ? &suspending
                                    : signal == SIGCONT ? &continuing
                                                        : &signalling;
    control_job(core, control, who, job, SIGNAL_WITH_SCOPE((uint32_t)signal, scope), request);
}

/* --- requeue --- */

/* It is already being ended for a requeue, during which it may request one itself: a handler of SIGTERM calls
 * scontrol requeue. */
static bool is_on_its_way(const struct job *job)
{
    return job->state == JOB_STOPPING && job->is_requeued;
}

static bool can_requeue(const struct job *job)
{
    return job->state == JOB_STARTING || job->state == JOB_RUNNING || is_on_its_way(job);
}

static void requeue(struct core *core, struct core_entry *entry, const struct identity *who, int64_t grace_ms)
{
    char text[] = "it was requeued";
    struct job_event event = { .type = EVENT_PREEMPTED,
        .attempt = entry->job->attempt,
        .uid = who->uid,
        .cause = REQUEUE_ASKED,
        .text = text };
    if (grace_ms >= 0) {
        event.stop_terms = STOP_TERMS_GRACE;
        event.stop_grace_ms = grace_ms;
    }
    if (!is_on_its_way(entry->job))
        core_change(core, entry, &event, NULL);
}

/* The hold is part of the same change, because the job could start again between the two. */
static void requeue_held(
    struct core *core, struct core_entry *entry, const struct identity *who, int64_t grace_ms)
{
    struct job_event event = { .type = EVENT_HELD,
        .attempt = entry->job->attempt,
        .uid = who->uid,
        .hold = core_hold_of(who, entry->job) };
    requeue(core, entry, who, grace_ms);
    core_change(core, entry, &event, NULL);
}

static const struct control requeueing = { "requeued", false, can_requeue, requeue };
static const struct control requeueing_held = { "requeued", false, can_requeue, requeue_held };

void core_requeue(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t id, int64_t grace_ms, bool is_held, void *request)
{
    const struct core_entry *entry = core_find(core, id);
    core_begin(core, boot_ms, wall_ms);
    if (entry == NULL || entry->job->state != JOB_DONE) {
        control_job(core, is_held ? &requeueing_held : &requeueing, who, id, grace_ms, request);
        return;
    }
    struct core_answer answer = { .job = id };
    answer.code = core_check_control(core, who, id, entry, &answer.err);
    if (answer.code == -EALREADY)
        (void)error_hint(&answer.err, "mgpu retry %" PRIu64 " submits a copy of it", id);
    core_reply(core, request, &answer);
}

/* --- elements of arrays --- */

static bool is_left(const struct job *array, uint32_t index)
{
    _cleanup_free_ char *rest = array->state == JOB_QUEUED ? array_without(array->array_left, index) : NULL;
    return rest != NULL;
}

uint64_t core_element(struct core *core, int64_t boot_ms, int64_t wall_ms, uint64_t array, uint32_t index,
    bool is_split, bool *ret_waits)
{
    struct core_entry *entry = core_find(core, array);
    *ret_waits = false;
    if (entry == NULL || !job_is_array(entry->job))
        return 0;
    for (const struct core_entry *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after)
        if (member->job->array_index == index)
            return member->job->id;
    *ret_waits = is_left(entry->job, index);
    if (!*ret_waits || !is_split)
        return 0;
    core_begin(core, boot_ms, wall_ms);
    const struct core_entry *element = core_split_off(core, entry, index, entry->job->ask->after);
    return element->job->id;
}
