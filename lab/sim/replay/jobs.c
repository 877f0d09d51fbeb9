/* SPDX-License-Identifier: MIT */
/* Jobs as derived from their events, and how each event is passed to the scheduler: the table of
 * docs/journal.md. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/array.h"
#include "job/behind.h"
#include "job/idle.h"
#include "lab/sim/by_id.h"
#include "lab/sim/replay/private.h"
#include "sched/from_record.h"

#define RETURN_BACKOFF_MS  1000 // wait after the first return; doubles
#define RETURN_BACKOFF_MAX 60000
#define RESTORE_BACKOFF_MS 10000

struct replay_job *replay_entry(const struct replay *replay, uint64_t id)
{
    return by_id_find(replay->jobs, replay->n_jobs, sizeof(*replay->jobs), id);
}

struct job *replay_find(const struct replay *replay, uint64_t id)
{
    const struct replay_job *entry = replay_entry(replay, id);
    return entry != NULL ? entry->job : NULL;
}

static bool is_known(const struct replay *replay, uint64_t id)
{
    return id != 0 && id <= replay->last_job;
}

/* --- in the scheduler's terms --- */

struct class_key replay_key(const struct job *job, uint64_t command_hash)
{
    return (struct class_key){
        .uid = job->uid,
        .gid = job_group(job),
        .priority = ask_priority_of_all(job->ask),
        .own_priority = ask_priority_of_own(job->ask),
        .is_preemptible = job->ask->preemptible,
        .had_turn = job_had_turn(job),
        .has_begun = job_is_early(job) && job_is_parked(job),
        .limit_ms = job->ask->time_limit_ms,
        .command_hash = command_hash,
    };
}

static uint32_t count_left(const struct job *job)
{
    struct array array = { 0 };
    struct error err;
    if (job_is_split_up(job) || parse_array(job->array_left, &array, &err) < 0)
        return 0;
    uint32_t count = array_size(&array);
    array_clear(&array);
    return count;
}

static int read_elements(const struct job *job, struct sched_job_spec *spec, struct error *err)
{
    struct array array = { 0 };
    int r = job_is_array(job) ? parse_array(job->ask->array, &array, err) : 0;
    if (r < 0 || !job_is_array(job))
        return r;
    spec->is_array = true;
    spec->element_limit = array.limit;
    spec->elements_open = job->array_open;
    spec->elements = count_left(job);
    array_clear(&array);
    return 0;
}

/* Like those that it excludes itself. */
static void leave_out(const char *refused_by, struct sched_request *request)
{
    if (refused_by == NULL)
        return;
    char *all =
        request->exclude == NULL ? xstrdup(refused_by) : xasprintf("%s,%s", request->exclude, refused_by);
    free(request->exclude);
    request->exclude = all;
}

static int describe(
    const struct replay *replay, const struct job *job, struct sched_job_spec *ret, struct error *err)
{
    const struct job *array = replay_find(replay, job->array_job);
    int64_t submit_ms =
        array != NULL ? array->submitted_ms : job->submitted_ms; // an element has waited as long
    *ret = (struct sched_job_spec){
        .id = job->id,
        .submit_ms = job->queued_ms != 0 ? job->queued_ms : submit_ms,
        .begin_ms = job->ask->begin_ms,
        .deadline_ms = job->ask->deadline_ms,
        .hold = job->hold,
        .preemptions = job->preemptions,
        .array = job->array_job,
        .key = replay_key(job, replay_entry(replay, job->id)->command_hash),
    };
    int r = request_from_ask(job->ask, &ret->key.request, err);
    if (r == 0)
        leave_out(replay_entry(replay, job->id)->refused_by, &ret->key.request);
    return r == 0 ? read_elements(job, ret, err) : r;
}

/* Not resolved yet by a start or an end; for a delay that has begun, sets when it ends. */
static bool is_open(const struct replay *replay, struct ask_after *after)
{
    const struct replay_job *entry = replay_entry(replay, after->job);
    const struct job *job = entry != NULL ? entry->job : NULL;
    if (after->kind != AFTER_START)
        return job != NULL;
    int64_t began_ms = job != NULL ? job->started_ms : entry != NULL ? entry->began_ms : 0;
    after->due_ms = began_ms != 0 && after->delay_ms != 0 ? began_ms + after->delay_ms : 0;
    return (job != NULL && began_ms == 0) || after->due_ms > replay->at_ms;
}

/* The job has ended, or its id was omitted, and the dependency is not satisfied. */
static bool never_comes_true(const struct replay *replay, const struct ask_after *after)
{
    const struct replay_job *entry = replay_entry(replay, after->job);
    bool is_ok = entry != NULL && entry->is_ok;
    return is_known(replay, after->job) && (entry == NULL || entry->job == NULL) &&
           !after_comes_true(after->kind, is_ok);
}

/* Dependencies that have not ended, then those that can never be satisfied; satisfied ones are left out. */
static int read_after(const struct replay *replay, const struct job *job, struct ask_after **ret,
    size_t *ret_open, size_t *ret_count, struct error *err)
{
    _cleanup_free_ struct ask_after *named = NULL;
    size_t count = 0;
    *ret = NULL;
    *ret_open = *ret_count = 0;
    int r = job->ask->after != NULL ? parse_after(job->ask->after, &named, &count, err) : 0;
    if (r < 0 || count == 0)
        return r;
    *ret = xcalloc(count, sizeof(**ret));
    for (size_t i = 0; i < count; i++) {
        if (is_open(replay, &named[i]))
            (*ret)[(*ret_open)++] = named[i];
    }
    *ret_count = *ret_open;
    for (size_t i = count; i-- > 0;)
        if (never_comes_true(replay, &named[i]))
            (*ret)[(*ret_count)++] = named[i];
    if (named[0].is_any && *ret_count < count)
        *ret_open = *ret_count = 0; // one has come true
    if (named[0].is_any && *ret_open > 0)
        *ret_count = *ret_open;
    return 0;
}

/* It failed, and its next try has a time. */
static void await_retry(struct replay *replay, const struct job *job)
{
    if (job->retry_ms > replay->at_ms)
        sched_block(replay->sched, replay->at_ms, job->id, BLOCK_BACKOFF, 0, job->retry_ms);
}

/* `is_edit`: the scheduler has it already. */
static int enqueue(struct replay *replay, const struct job *job, bool is_edit, struct error *err)
{
    struct sched_job_spec spec;
    _cleanup_free_ struct ask_after *after = NULL;
    size_t n_open = 0, count = 0;
    int r = describe(replay, job, &spec, err);
    if (r == 0)
        r = read_after(replay, job, &after, &n_open, &count, err);
    spec.after = after;
    spec.n_after = count;
    if (r == 0)
        (is_edit ? sched_edit : sched_submit)(replay->sched, replay->at_ms, &spec);
    if (r == 0 && !is_edit)
        await_retry(replay, job); // at a start
    for (size_t i = n_open; r == 0 && i < count; i++)
        sched_resolve_dependents(replay->sched, replay->at_ms, after[i].job, after[i].kind == AFTER_FAIL);
    request_clear(&spec.key.request);
    return r;
}

/* It waits for what it left, or for as much of the same kind on its node. */
static int enqueue_owed(struct replay *replay, const struct job *job, bool is_edit, struct error *err)
{
    struct sched_job_spec spec;
    struct allocation left;
    struct job_ask ask;
    struct job parked = *job; // borrowed
    park_owed_ask(job, &ask);
    parked.ask = &ask;
    int r = describe(replay, &parked, &spec, err);
    bool stays = job->state == JOB_STOPPING || job_park(job)->phase == PARK_PARKED;
    spec.hold = stays ? BLOCK_HELD_USER : 0;
    park_times_of_job(sched_cluster(replay->sched), job, replay->at_ms, &spec, &left);
    if (r == 0)
        (is_edit ? sched_edit : sched_submit)(replay->sched, replay->at_ms, &spec);
    allocation_clear(&left);
    request_clear(&spec.key.request);
    return r;
}

/* As core_enqueue_parked() of the controller. */
static int enqueue_parked(struct replay *replay, const struct job *job, bool is_edit, struct error *err)
{
    if (job_is_owed(job))
        return enqueue_owed(replay, job, is_edit, err);
    struct sched_job_spec spec;
    struct job_ask ask;
    struct job parked = *job; // borrowed
    _cleanup_free_ char *places = park_places_of_job(sched_known(replay->sched), job);
    job_park_ask(job, places, &ask);
    parked.ask = &ask;
    int r = describe(replay, &parked, &spec, err);
    bool stays = job->state == JOB_STOPPING || job_park(job)->phase == PARK_PARKED;
    spec.hold = stays ? BLOCK_HELD_USER : 0;
    if (r == 0)
        (is_edit ? sched_edit : sched_submit)(replay->sched, replay->at_ms, &spec);
    request_clear(&spec.key.request);
    free(ask.gpu_ids);
    return r;
}

int replay_take_up(struct replay *replay, struct job *job, struct error *err)
{
    struct sched_job_spec spec;
    struct allocation allocation;
    int r = 0;
    if (job->state == JOB_QUEUED)
        return enqueue(replay, job, false, err);
    if (job_is_parked(job))
        return enqueue_parked(replay, job, false, err);
    if (job_is_behind(job)) {
        r = enqueue(replay, job, false, err);
        sched_block(replay->sched, replay->at_ms, job->id, BLOCK_HELD_USER, 0, TIME_NEVER);
        return r;
    }
    r = describe(replay, job, &spec, err);
    if (r < 0)
        return r;
    struct allocation left; // stays empty: it is not parked
    park_times_of_job(sched_cluster(replay->sched), job, replay->at_ms, &spec, &left);
    int64_t started_ms = park_run_since(job, replay->at_ms);
    allocation_of_job(sched_cluster(replay->sched), job, &allocation);
    sched_resume(replay->sched, replay->at_ms, &spec, &allocation, started_ms);
    sched_idle(replay->sched, replay->at_ms, job->id, job->idle_level == IDLE_YIELDS);
    allocation_clear(&allocation);
    request_clear(&spec.key.request);
    return 0;
}

/* --- the jobs --- */

static int add_job(struct replay *replay, const struct turn_event *turn, struct error *err)
{
    uint64_t id = turn->event.job;
    if (turn->event.ask.count != 1)
        return error_set(err, -EPROTO, "job %" PRIu64 " is submitted without an \"ask\"", id);
    if (id <= replay->last_job)
        return error_set(
            err, -EPROTO, "job %" PRIu64 " is submitted after job %" PRIu64, id, replay->last_job);
    if (replay->n_jobs == replay->jobs_room) {
        replay->jobs_room = replay->jobs_room == 0 ? 512 : replay->jobs_room * 2;
        replay->jobs = xreallocarray(replay->jobs, replay->jobs_room, sizeof(*replay->jobs));
    }
    struct job_spec spec = { .ask = *(const struct job_ask *)turn->event.ask.items }; // borrowed
    struct job *job = job_new(id, &spec);
    job->hold = turn->event.hold;
    replay->last_job = id;
    replay->may_skip_ids = false;
    replay->jobs[replay->n_jobs++] =
        (struct replay_job){ .id = id, .job = job, .command_hash = turn->command_hash };
    return 0;
}

int replay_apply(
    struct replay *replay, const struct turn_event *turn, enum job_state *ret_before, struct error *err)
{
    const struct job_event *event = &turn->event;
    int r = event->type == EVENT_SUBMITTED ? add_job(replay, turn, err) : 0;
    if (r < 0)
        return r;
    struct job *job = replay_find(replay, event->job);
    if (job == NULL)
        return error_set(err, -EPROTO, "there is no job %" PRIu64 " to which '%s' could happen", event->job,
            job_event_name((enum job_event_type)event->type));
    *ret_before = job->state;
    return job_apply(job, event, err);
}

/* --- how events are reported to the scheduler --- */

static int apply_submitted(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    const struct job *array = replay_find(replay, job->array_job);
    int r = array != NULL ? enqueue(replay, array, true, err) : 0; // it has one element less
    return r == 0 ? enqueue(replay, job, false, err) : r;
}

/* It runs without its GPUs, and waits for them like a parked job. */
static int apply_allocated(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (event->behind != 0) // it waits, but for no pass
        sched_block(replay->sched, replay->at_ms, job->id, BLOCK_HELD_USER, 0, TIME_NEVER);
    return event->is_early != 0 ? enqueue_parked(replay, job, true, err) : 0;
}

static int apply_started(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (job_is_early(job) || job_is_behind(job))
        sched_began(replay->sched, replay->at_ms, job->id, replay->at_ms);
    else
        sched_started(replay->sched, replay->at_ms, job->id);
    return 0;
}

/* It is parked, and not to return. */
static void stay_parked(struct replay *replay, const struct job *job)
{
    if (job_is_parked(job))
        sched_block(replay->sched, replay->at_ms, job->id, BLOCK_HELD_USER, 0, TIME_NEVER);
}

static int apply_stop(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (!job_state_is_active(job->state))
        sched_withdraw(replay->sched, replay->at_ms, job->id);
    else
        stay_parked(replay, job);
    return 0;
}

static int apply_park(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    stay_parked(replay, job);
    return 0;
}

static int apply_reconciled(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (job_park_is_unconfirmed(job))
        stay_parked(replay, job);
    return 0;
}

static int apply_parked(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    bool is_back = job_park(job)->since_ms != event->wall_ms; // nothing of it was restored
    bool is_owed = job_is_owed(job);
    if (is_owed)
        sched_parked(replay->sched, replay->at_ms, job->id, job_park(job)->ran_ms);
    else
        sched_stopped(replay->sched, replay->at_ms, job->id, job_park_ran_ms(job));
    int r = is_owed ? 0 : enqueue_parked(replay, job, true, err);
    if (is_back)
        sched_block(
            replay->sched, replay->at_ms, job->id, BLOCK_BACKOFF, 0, replay->at_ms + RESTORE_BACKOFF_MS);
    return r;
}

static int apply_unparked(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (job_park_was_refused(job, event) && park_cause_is_rule(job_park(job)->cause))
        sched_park_refused(replay->sched, replay->at_ms, job->id);
    return apply_started(replay, job, event, err);
}

static int apply_unpark(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    sched_block(replay->sched, replay->at_ms, job->id, 0, BLOCK_HELD_USER, TIME_NEVER);
    return 0;
}

/* Again, without its dependencies: it has started before, or was tried. */
static int enqueue_started(struct replay *replay, uint64_t id, struct error *err)
{
    struct job *job = replay_find(replay, id);
    const struct job_ask *asked = job->ask;
    struct job_ask ask = *asked;
    ask.after = NULL;
    job->ask = &ask;
    int r = enqueue(replay, job, true, err);
    job->ask = asked;
    return r;
}

/* It is requeued with other properties: it was preemptible because it was idle, had another time limit, or
 * another place. Its dependencies are settled. */
static int stop_run(struct replay *replay, const struct job *job, struct error *err)
{
    struct sched_job_status status;
    sched_stopped(replay->sched, replay->at_ms, job->id, 0);
    if (!sched_job_status(replay->sched, job->id, replay->at_ms, &status) ||
        (status.key->request.n_picks == 0 && status.key->is_preemptible == job->ask->preemptible &&
            status.key->limit_ms == job->ask->time_limit_ms && status.key->had_turn == job_had_turn(job) &&
            job->queued_ms != replay->at_ms && replay_entry(replay, job->id)->refused_by == NULL &&
            text_equal(status.key->request.exclude, job->ask->exclude)))
        return 0;
    return enqueue_started(replay, job->id, err);
}

void replay_admit_again(struct replay_job *entry)
{
    free(take_ptr(entry->refused_by));
}

int replay_refused(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    struct replay_job *entry = replay_entry(replay, change->job);
    if (entry == NULL)
        return 0; // mgpud has removed it
    if (entry->job == NULL || (change->text == NULL && entry->job->state != JOB_QUEUED))
        return error_set(err, -EPROTO, "job %" PRIu64 " does not wait for nodes", change->job);
    replay_admit_again(entry);
    entry->refused_by = xstrdup(change->text);
    return change->text == NULL ? enqueue_started(replay, change->job, err) : 0; // else its return follows
}

static void set_hold(struct replay *replay, const struct job *job)
{
    uint32_t both = BLOCK_HELD_USER | BLOCK_HELD_ADMIN;
    sched_block(replay->sched, replay->at_ms, job->id, job->hold, both & ~job->hold, TIME_NEVER);
}

static int apply_returned(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (job->state == JOB_DONE) {
        sched_ended(replay->sched, replay->at_ms, job->id, -1);
        sched_withdraw(replay->sched, replay->at_ms, job->id); // it was behind another
        return 0;
    }
    uint32_t returns = job->attempt - job->preemptions;
    unsigned doublings = returns > 0 && returns < 7 ? returns - 1 : 6;
    int64_t wait_ms = (int64_t)RETURN_BACKOFF_MS << doublings;
    wait_ms = wait_ms < RETURN_BACKOFF_MAX ? wait_ms : RETURN_BACKOFF_MAX;
    int64_t until_ms = job->retry_ms != 0 ? job->retry_ms : replay->at_ms + wait_ms; // 0: of an older mgpud
    int r = stop_run(replay, job, err);
    set_hold(replay, job);
    sched_block(replay->sched, replay->at_ms, job->id, BLOCK_BACKOFF, 0, until_ms);
    return r;
}

static int apply_requeued(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    replay_admit_again(replay_entry(replay, job->id));
    int r = stop_run(replay, job, err);
    set_hold(replay, job);
    await_retry(replay, job);
    return r;
}

static int apply_ended(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    bool is_learnt = event->end == END_EXIT || event->end == END_SIGNAL || event->end == END_TIME_LIMIT;
    sched_ended(replay->sched, replay->at_ms, job->id, is_learnt ? event->run_ms : -1);
    sched_withdraw(replay->sched, replay->at_ms, job->id); // given up while it waited
    return 0;
}

static int apply_edited(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (job->state == JOB_QUEUED) {
        replay_admit_again(replay_entry(replay, job->id));
        return enqueue(replay, job, true, err);
    }
    int r = job_is_parked(job) ? enqueue_parked(replay, job, true, err) : 0;
    sched_relimit(replay->sched, replay->at_ms, job->id, job->ask->time_limit_ms);
    return r;
}

static int apply_hold(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    if (job->state == JOB_QUEUED)
        set_hold(replay, job);
    return 0;
}

static int apply_idle(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    sched_idle(replay->sched, replay->at_ms, job->id, job->idle_level == IDLE_YIELDS);
    return 0;
}

static int apply_inherits(
    struct replay *replay, const struct job *job, const struct job_event *event, struct error *err)
{
    _cleanup_(allocation_clear) struct allocation allocation;
    allocation_of_job(sched_cluster(replay->sched), job, &allocation);
    sched_begin(replay->sched, replay->at_ms, job->id, &allocation, park_run_since(job, replay->at_ms));
    return 0;
}

static int (*const notifiers[EVENT_TYPES])(
    struct replay *, const struct job *, const struct job_event *, struct error *) = {
    [EVENT_SUBMITTED] = apply_submitted,
    [EVENT_ALLOCATED] = apply_allocated,
    [EVENT_STARTED] = apply_started,
    [EVENT_STOP] = apply_stop,
    [EVENT_RETURNED] = apply_returned,
    [EVENT_REQUEUED] = apply_requeued,
    [EVENT_ENDED] = apply_ended,
    [EVENT_EDITED] = apply_edited,
    [EVENT_HELD] = apply_hold,
    [EVENT_RELEASED] = apply_hold,
    [EVENT_IDLE] = apply_idle,
    [EVENT_PREEMPTED] = apply_park,
    [EVENT_PARK] = apply_park,
    [EVENT_PARKED] = apply_parked,
    [EVENT_UNPARK] = apply_unpark,
    [EVENT_UNPARKED] = apply_unparked,
    [EVENT_RECONCILED] = apply_reconciled,
    [EVENT_INHERITS] = apply_inherits,
};

int replay_forward(struct replay *replay, const struct turn_event *turn, struct error *err)
{
    enum job_state before = JOB_NEW;
    const struct job_event *event = &turn->event;
    int r = replay_apply(replay, turn, &before, err);
    struct job *job = replay_find(replay, event->job);
    if (r == 0)
        replay_note_park(
            replay, replay_entry(replay, job->id), event); // before the scheduler asks who may be parked
    if (r == 0 && notifiers[event->type] != NULL)
        r = notifiers[event->type](replay, job, event, err);
    if (r < 0)
        return r;
    struct replay_job *entry = replay_entry(replay, job->id);
    if (job_state_is_active(before) && !job_state_is_active(job->state))
        entry->is_park_barred = false;
    if (job_state_is_active(before) && !job_state_is_active(job->state))
        replay_keep_accounts(replay, job, entry->command_hash);
    if (job->state != JOB_DONE)
        return 0;
    entry->is_ok = job->end == END_EXIT && job->exit_code == 0;
    entry->began_ms = job->started_ms != 0 ? job->started_ms : job->ended_ms;
    entry->job = NULL;
    replay_admit_again(entry);
    sched_resolve_dependents(replay->sched, replay->at_ms, job->id, entry->is_ok);
    job_free(job);
    return 0;
}
