/* SPDX-License-Identifier: MIT */
/* Every change of a job's state goes through job_apply: in the daemon, its restart, --fsck and the
 * simulator. */
#include "job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/array.h"
#include "job/behind.h"
#include "job/idle.h"

bool job_had_turn(const struct job *job)
{
    uint32_t cause = job_run(job)->requeue_cause;
    return job->queued_ms != 0 && (cause == REQUEUE_TIME_LIMIT || cause == REQUEUE_ASKED);
}

const struct job_run *job_run(const struct job *job)
{
    static const struct job_run none = { 0 };
    return job->run != NULL ? job->run : &none;
}

struct job_run *job_make_run(struct job *job)
{
    if (job->run == NULL)
        job->run = xcalloc(1, sizeof(*job->run));
    return job->run;
}

void job_run_free(struct job_run *run)
{
    if (run == NULL)
        return;
    free(run->boot_id);
    job_nodes_free(run->nodes);
    free(run->log_path);
    job_usage_free(run->usage);
    job_park_free(run->park);
    job_earlier_free(run->earlier);
    free(run);
}

/* The same text without spare capacity, because it is kept as long as the job. A copy, because shrinking in
 * place leaves a hole too small to reuse. */
static char *fit(char *text)
{
    char *exact = xstrdup(text);
    free(text);
    return exact;
}

struct job *job_new(uint64_t id, const struct job_spec *spec)
{
    struct job *job = xcalloc(1, sizeof(*job));
    job->id = id;
    job->ask = ask_shared_new(&spec->ask);
    job->hold = spec->hold ? HOLD_USER : 0;
    job->array_left = spec->ask.array != NULL ? array_indexes(spec->ask.array) : NULL;
    job->name = fit(job_spec_display_name(spec));
    _cleanup_free_ char *command = text_quote_command(&spec->command);
    job->summary = fit(text_escape(command, JOB_SUMMARY_MAX));
    return job;
}

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    ask_shared_drop(job->ask);
    free(job->array_left);
    free(job->name);
    free(job->summary);
    free(job->node);
    gpu_grants_clear(&job->grants);
    job_run_free(job->run);
    free(job->text);
    free(job);
}

void job_freep(struct job **job)
{
    job_free(*job);
}

static void set_text(char **field, const char *text)
{
    if (text == NULL)
        return;
    free(*field);
    *field = xstrdup(text);
}

void job_set_ask(struct job *job, const struct job_ask *ask)
{
    const struct job_ask *before = job->ask;
    job->ask = ask_shared_new(ask);
    ask_shared_drop(before);
}

static void take_ask(struct job *job, const struct job_event *event)
{
    if (event->ask.count > 0 && event->ask.items != job->ask) // that of a new job may be its own
        job_set_ask(job, event->ask.items);
}

static void on_submitted(struct job *job, const struct job_event *event)
{
    job->uid = event->uid;
    job->gid = event->gid;
    job->account = event->account;
    job->submitted_ms = event->wall_ms;
    if (event->credential.count > 0)
        job->api_token = ((const struct event_credential *)event->credential.items)->token;
    take_ask(job, event); // completed by the site's rules, unlike that of the specification
    if (event->array_job == 0)
        return;
    /* An element starts with the current request of its array, and is no array itself. */
    job->array_job = event->array_job;
    job->array_index = event->array_index;
    job->hold = event->hold;
    set_text(&job->name, event->name);
    free(take_ptr(job->array_left));
    struct job_ask single = *job->ask;
    single.array = NULL;
    job_set_ask(job, &single);
}

static void on_allocated(struct job *job, const struct job_event *event)
{
    job->attempt = event->attempt;
    job->token = event->token;
    set_text(&job->node, event->node);
    struct job_run *run = job_make_run(job);
    run->cpu_milli = event->cpu_milli;
    run->memory = event->memory;
    run->node_lease_ms = event->node_lease_ms;
    set_text(&run->boot_id, event->boot_id);
    job_nodes_free(run->nodes);
    run->nodes = job_nodes_copy(&event->nodes);
    gpu_grants_clear(&job->grants);
    gpu_grants_copy(&job->grants, &event->gpus);
    job_park_begin_early(job, event);
    job_behind_apply(job, event);
}

static void on_started(struct job *job, const struct job_event *event)
{
    job->started_ms = event->wall_ms;
    job_park_note_start(job, event->wall_ms);
    set_text(&job_make_run(job)->log_path, event->log_path);
}

static void give_up_rest(struct job *job)
{
    if (job_is_array(job))
        job->array_left[0] = '\0';
}

static void take_stop_terms(struct job *job, const struct job_event *event)
{
    job_make_run(job)->stop_terms = event->stop_terms;
    job_make_run(job)->stop_grace_ms = event->stop_grace_ms;
}

static void on_stop(struct job *job, const struct job_event *event)
{
    if (job_state_is_active(job->state))
        take_stop_terms(job, event);
    if (job->state == JOB_STOPPING && !job->is_requeued)
        return; // it ends by the first stop, now with other terms
    job->stopped_by = event->uid;
    job->stop_reason = event->reason != END_NONE ? (enum job_end)event->reason : END_CANCELLED;
    job->is_requeued = false;
    give_up_rest(job);
    if (job->state != JOB_QUEUED || job->array_open > 0)
        return;
    job->end = job->stop_reason;
    job->ended_ms = event->wall_ms;
}

static void forget_idleness(struct job *job)
{
    job->idle_level = IDLE_NONE;
    job_make_run(job)->idle_warned_ms = 0;
}

static void forget_terms(struct job *job, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    run->suspended_ms = 0;
    run->terms = 0;
    run->stop_terms = 0;
    run->stop_grace_ms = 0;
    run->requeue_cause = REQUEUE_PREEMPTED;
    job_park_end(run->park, event->wall_ms);
}

/* A preempted job keeps its place in the queue; other requeued jobs go to its end. */
static void note_restart(struct job *job, uint32_t cause, int64_t wall_ms)
{
    if (cause == REQUEUE_PREEMPTED)
        return;
    struct job_run *run = job_make_run(job);
    run->requeue_cause = cause;
    run->limit_requeues += cause == REQUEUE_TIME_LIMIT;
    run->loss_requeues += cause == REQUEUE_NODE_LOST;
    job->restarts++;
    job->retries += cause == REQUEUE_FAILED;
    job->queued_ms = wall_ms;
}

/* The attempt has ended and the job waits for the next one. */
static void go_back(struct job *job, const struct job_event *event)
{
    job->preemptions += job->is_requeued;
    /* Its old place in the queue would return the GPUs that it did not use. */
    if (job->is_requeued && job->idle_level == IDLE_YIELDS) {
        struct job_ask yielding = *job->ask;
        yielding.preemptible = true;
        job_set_ask(job, &yielding);
    }
    job->is_requeued = false;
    forget_idleness(job);
    forget_terms(job, event);
    job->retry_ms = 0;
    gpu_grants_clear(&job->grants);
    job->token = 0;
    job->started_ms = 0;
    free(take_ptr(job->node));
    struct job_run *run = job_make_run(job);
    run->cpu_milli = 0;
    run->memory = 0;
    run->node_lease_ms = 0;
    free(take_ptr(run->boot_id));
    job_nodes_free(take_ptr(run->nodes));
    job_park_requeue(job);
}

static void on_returned(struct job *job, const struct job_event *event)
{
    bool is_over = job->state == JOB_STOPPING && !job->is_requeued && event->reason == END_NONE;
    uint32_t cause = job->is_requeued ? job_run(job)->requeue_cause : REQUEUE_PREEMPTED;
    go_back(job, event);
    note_restart(job, cause, event->wall_ms);
    job->retry_ms = event->retry_ms;
    set_text(&job->text, event->text);
    if (is_over) {
        job->end = job->stop_reason;
        job->ended_ms = event->wall_ms;
    } else {
        job->stop_reason = END_NONE;
        job->stopped_by = 0;
    }
}

static void take_usage(struct job *job, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    job_usage_free(run->usage);
    run->usage = event->usage.count > 0 ? job_usage_copy(event->usage.items) : NULL;
}

static void on_ended(struct job *job, const struct job_event *event)
{
    job->end = (enum job_end)event->end;
    job->exit_code = event->exit_code;
    job->ended_ms = event->wall_ms;
    job->is_requeued = false;
    forget_idleness(job);
    forget_terms(job, event);
    give_up_rest(job);
    if (event->started_wall_ms != 0)
        job->started_ms = event->started_wall_ms;
    struct job_run *run = job_make_run(job);
    if (event->nodes.count > 0) {
        struct job_nodes *nodes = job_nodes_copy(&event->nodes);
        job_nodes_free(run->nodes);
        run->nodes = nodes;
    }
    run->signal = event->signal;
    run->run_ms = event->run_ms;
    run->cpu_ms = event->cpu_ms;
    run->max_rss = event->max_rss;
    run->log_bytes = event->log_bytes;
    set_text(&run->log_path, event->log_path);
    free(take_ptr(job->text));
    set_text(&job->text, event->text);
    take_usage(job, event);
}

static void on_edited(struct job *job, const struct job_event *event)
{
    take_ask(job, event);
    if (job->state == JOB_RUNNING)
        job_make_run(job)->terms++;
    set_text(&job->name, event->name);
}

static void on_held(struct job *job, const struct job_event *event)
{
    job->hold |= event->hold;
}

static void on_released(struct job *job, const struct job_event *event)
{
    job->hold &= ~event->hold;
}

static void on_preempted(struct job *job, const struct job_event *event)
{
    job->is_requeued = true;
    job_make_run(job)->requeue_cause = event->cause;
    job_park_note_reclaim(job, event);
    take_stop_terms(job, event);
    set_text(&job->text, event->text);
}

static void on_suspended(struct job *job, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    if (run->suspended_ms == 0)
        run->suspended_ms = event->wall_ms;
    run->terms++;
}

static void on_continued(struct job *job, const struct job_event *event)
{
    job_make_run(job)->suspended_ms = 0;
    job_make_run(job)->terms++;
}

static void on_idle(struct job *job, const struct job_event *event)
{
    if (event->idle_level == IDLE_NONE)
        job_make_run(job)->idle_warned_ms = 0;
    else if (job->idle_level == IDLE_NONE)
        job_make_run(job)->idle_warned_ms = event->wall_ms;
    job->idle_level = event->idle_level;
}

static void on_requeued(struct job *job, const struct job_event *event)
{
    job->is_requeued = true; // also without a request
    job_earlier_apply(job, event);
    go_back(job, event);
    note_restart(job, event->cause, event->wall_ms);
    job->retry_ms = event->retry_ms;
    set_text(&job_make_run(job)->log_path, event->log_path);
    free(take_ptr(job->text)); // the reason of the preemption applied to that attempt
    set_text(&job->text, event->text);
    take_usage(job, event);
}

/* Signals leave nothing behind, and steps are not part of the record: job/step.h folds them. */
static void change_nothing(struct job *job, const struct job_event *event)
{
}

static void on_split(struct job *job, const struct job_event *event)
{
    char *left = array_without(job->array_left, event->array_index);
    free(job->array_left);
    job->array_left = left;
    job->array_open++;
}

static bool has_more_elements(const struct job *job)
{
    return job->array_open > 0 || (job_is_array(job) && job->array_left[0] != '\0');
}

static void on_member(struct job *job, const struct job_event *event)
{
    bool is_good = event->end == END_EXIT && event->exit_code == 0;
    /* The exit code of an array is that of its first failed element, and never 0 when one has failed. */
    if (!is_good && job->array_failed++ == 0)
        job->exit_code = event->exit_code != 0 ? event->exit_code : 1;
    job->array_done += is_good;
    job->array_cancelled += event->end == END_CANCELLED;
    if (event->exit_code > job->array_exit_max)
        job->array_exit_max = event->exit_code;
    job->array_open--;
    if (has_more_elements(job))
        return;
    job->end = job->stop_reason != END_NONE ? job->stop_reason : END_EXIT;
    job->ended_ms = event->wall_ms;
}

static void (*const appliers[EVENT_TYPES])(struct job *, const struct job_event *) = {
    [EVENT_SUBMITTED] = on_submitted,
    [EVENT_ALLOCATED] = on_allocated,
    [EVENT_STARTED] = on_started,
    [EVENT_STOP] = on_stop,
    [EVENT_RETURNED] = on_returned,
    [EVENT_ENDED] = on_ended,
    [EVENT_EDITED] = on_edited,
    [EVENT_HELD] = on_held,
    [EVENT_RELEASED] = on_released,
    [EVENT_PREEMPTED] = on_preempted,
    [EVENT_REQUEUED] = on_requeued,
    [EVENT_SPLIT] = on_split,
    [EVENT_MEMBER] = on_member,
    [EVENT_IDLE] = on_idle,
    [EVENT_SUSPENDED] = on_suspended,
    [EVENT_CONTINUED] = on_continued,
    [EVENT_SIGNALLED] = change_nothing,
    [EVENT_STEP_STARTED] = change_nothing,
    [EVENT_STEP_ENDED] = change_nothing,
    [EVENT_PARK] = job_park_apply,
    [EVENT_PARKED] = job_park_apply,
    [EVENT_UNPARK] = job_park_apply,
    [EVENT_RESTORING] = job_park_apply,
    [EVENT_UNPARKED] = job_park_apply,
    [EVENT_RECONCILED] = job_park_apply,
    [EVENT_INHERITS] = job_behind_apply,
};

/* Will the job wait for more after this event? See job_transition(). */
static bool goes_on(const struct job *job, const struct job_event *event)
{
    if (event->type == EVENT_RETURNED && event->reason != END_NONE)
        return true;
    if (event->type != EVENT_MEMBER)
        return job->is_requeued || job->array_open > 0;
    return job->array_open > 1 || (job_is_array(job) && job->array_left[0] != '\0');
}

/* The state that this event leads to; false if the event is not allowed in the job's current state. */
static bool job_next_state(const struct job *job, const struct job_event *event, enum job_state *ret_next)
{
    return job_transition(job->state, (enum job_event_type)event->type, goes_on(job, event), ret_next);
}

static bool is_for_this_attempt(const struct job *job, const struct job_event *event)
{
    switch (event->type) {
    case EVENT_ALLOCATED: return event->attempt == job->attempt + 1;
    case EVENT_SUBMITTED:
    case EVENT_STOP:
    case EVENT_EDITED:
    case EVENT_HELD:
    case EVENT_RELEASED:
    case EVENT_SPLIT:
    case EVENT_MEMBER:
    case EVENT_CLUSTER: return true;
    default: return event->attempt == job->attempt;
    }
}

/* The elements of an array are fixed at its submit; how many run at a time may change. */
static bool has_same_indexes(const struct job *job, const struct job_event *event)
{
    const struct job_ask *ask = event->ask.items;
    if (job->ask->array == NULL || ask->array == NULL)
        return job->ask->array == ask->array;
    _cleanup_free_ char *before = array_indexes(job->ask->array);
    _cleanup_free_ char *after = array_indexes(ask->array);
    return before != NULL && text_equal(before, after);
}

static bool is_left(const struct job *job, uint32_t index)
{
    _cleanup_free_ char *left = job_is_array(job) ? array_without(job->array_left, index) : NULL;
    return left != NULL;
}

static bool starts_with_node(const struct job_event *event)
{
    return text_equal(((const struct job_node *)event->nodes.items)->name, event->node);
}

/* The error in the event itself, or NULL. */
static const char *find_fault(const struct job *job, const struct job_event *event)
{
    switch (event->type) {
    case EVENT_ALLOCATED:
        if (job_is_array(job))
            return "an array itself cannot run";
        if (event->nodes.count == 1 || (event->nodes.count > 1 && !starts_with_node(event)))
            return "its list of nodes is invalid";
        if (job_behind_fault(job, event) != NULL)
            return job_behind_fault(job, event);
        return job->hold != 0 ? "the job is held" : job_park_fault(job, event);
    case EVENT_STOP: return event->reason >= END_KINDS ? "unknown end" : NULL;
    case EVENT_RETURNED:
        return event->reason != END_NONE && event->reason != job->stop_reason ? "it voids another stop"
                                                                              : NULL;
    case EVENT_ENDED:
        if (event->nodes.count > 0 && event->nodes.count != job_node_count(job))
            return "it has other nodes";
        return event->end == END_NONE || event->end >= END_KINDS ? "unknown end" : NULL;
    case EVENT_EDITED:
        if (event->ask.count != 1)
            return "the request is missing";
        return has_same_indexes(job, event) ? NULL : "array indexes cannot change";
    case EVENT_PREEMPTED:
    case EVENT_REQUEUED: return event->cause >= REQUEUE_CAUSES ? "unknown cause" : NULL;
    case EVENT_SPLIT: return is_left(job, event->array_index) ? NULL : "no such element is left";
    case EVENT_IDLE: return event->idle_level >= IDLE_LEVELS ? "unknown level" : NULL;
    case EVENT_MEMBER: return job->array_open > 0 ? NULL : "no element is open";
    case EVENT_PARK:
    case EVENT_PARKED:
    case EVENT_UNPARK:
    case EVENT_RESTORING:
    case EVENT_UNPARKED:
    case EVENT_RECONCILED: return job_park_fault(job, event);
    case EVENT_INHERITS: return job_behind_fault(job, event);
    default: return NULL;
    }
}

int job_apply(struct job *job, const struct job_event *event, struct error *err)
{
    enum job_state next;
    const char *name = job_event_name((enum job_event_type)event->type);
    if (event->job != job->id)
        return error_set(
            err, -EPROTO, "event of job %" PRIu64 " applied to job %" PRIu64, event->job, job->id);
    if (!job_next_state(job, event, &next))
        return error_set(err, -EPROTO, "job %" PRIu64 " is %s: %s is not possible", job->id,
            job_state_name(job->state), name);
    if (!is_for_this_attempt(job, event))
        return error_set(err, -EPROTO, "job %" PRIu64 " is in attempt %u: %s refers to attempt %u", job->id,
            job->attempt, name, event->attempt);
    const char *fault = find_fault(job, event);
    if (fault != NULL)
        return error_set(err, -EPROTO, "job %" PRIu64 ": %s is not possible: %s", job->id, name, fault);
    appliers[event->type](job, event);
    job->state = next;
    return 0;
}

/* The violated rule of arrays and their elements; NULL: none. */
static const char *find_broken_array_rule(const struct job *job)
{
    if (!job_is_array(job))
        return job->array_open > 0 || job->array_failed > 0 || job->array_done > 0
                   ? "only an array has elements"
                   : NULL;
    if (job->array_cancelled > job->array_failed)
        return "a cancelled element has failed";
    if (job_state_is_active(job->state))
        return "an array itself cannot run";
    if (job->array_job != 0)
        return "an element is not an array";
    if ((job->state == JOB_DONE) == has_more_elements(job))
        return "an array is done if and only if it has no element left or open";
    return NULL;
}

static const char *find_broken_rule(const struct job *job)
{
    bool is_active = job_state_is_active(job->state);
    if (is_active && (job->attempt == 0 || job->token == 0 || job->node == NULL))
        return "an active job has an attempt, a token and a node";
    if (is_active && job->ask->gpus != job->grants.count)
        return "an active job has the number of GPUs it requested";
    if (is_active && job_has_stray_grant(job))
        return "an active job has GPUs only on its nodes";
    if (is_active && job->hold != 0 && job->state != JOB_STOPPING)
        return "a job that runs is not held";
    if (job->state == JOB_QUEUED &&
        (job->grants.count > 0 || job_run(job)->nodes != NULL || job->token != 0 ||
            job_run(job)->cpu_milli != 0 || job_run(job)->memory != 0))
        return "a queued job has no resources";
    if (job->is_requeued && job->state != JOB_STOPPING)
        return "only a stopping job returns to the queue";
    if (job->state == JOB_STOPPING && job->is_requeued == (job->stop_reason != END_NONE))
        return "a stopping job has a reason or returns to the queue";
    if (job->idle_level != IDLE_NONE && job->state != JOB_RUNNING && job->state != JOB_STOPPING)
        return "only a running job is idle";
    if ((job->idle_level != IDLE_NONE) != (job_run(job)->idle_warned_ms != 0))
        return "an idle job has the time since which it is idle";
    if ((job_run(job)->suspended_ms != 0 || job_run(job)->terms != 0) && job->state != JOB_RUNNING &&
        job->state != JOB_STOPPING)
        return "only a running job is suspended or updated";
    if ((job_run(job)->stop_terms != 0 || job_run(job)->stop_grace_ms != 0) && job->state != JOB_STOPPING)
        return "only a stopping job has stop options";
    if ((job->state == JOB_DONE) != (job->end != END_NONE))
        return "a job has an end if and only if it is done";
    if (job->state == JOB_DONE && job->ended_ms == 0)
        return "a done job has an end time";
    const char *broken = job_park_rule(job);
    return broken != NULL ? broken : find_broken_array_rule(job);
}

int job_invariant(const struct job *job, struct error *err)
{
    const char *broken = find_broken_rule(job);
    if (broken == NULL)
        return 0;
    return error_set(err, -EBADMSG, "job %" PRIu64 " (%s): %s", job->id, job_state_name(job->state), broken);
}
