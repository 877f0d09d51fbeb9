/* SPDX-License-Identifier: MIT */
/*
 * The turns of a journal. Events with the same time are one turn: those that are not decisions are passed to
 * the scheduler, then one pass runs, whose decisions must be the rest of the turn. Passes due by the
 * scheduler's own timers come before a turn.
 */
#include "lab/sim/replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/array.h"
#include "lab/sim/replay/private.h"

/* --- decisions --- */

struct place {
    const char *node;
    uint32_t index, slot, share;
    uint64_t memory;
};

static void write_place(struct buffer *text, const struct place *place)
{
    buffer_printf(text, "%s%s:%u", text->length > 0 ? ", " : "", place->node, place->index);
    if (place->slot > 0)
        buffer_printf(text, " (slot %u, %u thousandths, %llu MiB)", place->slot, place->share,
            (unsigned long long)(place->memory >> 20));
}

static char *end_place(struct buffer *text, const char *node, uint32_t cpu_milli, uint64_t memory)
{
    if (text->length == 0)
        buffer_printf(text, "%s", node);
    if (cpu_milli > 0)
        buffer_printf(text, " with %g CPUs", cpu_milli / 1000.0);
    if (memory > 0)
        buffer_printf(text, " with %llu MiB of memory", (unsigned long long)(memory >> 20));
    return buffer_take(text);
}

static char *where_here(const struct cluster *cluster, const struct allocation *allocation)
{
    struct buffer text = { 0 };
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *gpu = &allocation->gpus[i];
        const struct cluster_node *node = &cluster->nodes[gpu->node];
        write_place(&text,
            &(struct place){ node->name, node->gpus[gpu->gpu].index, gpu->slot, gpu->share, gpu->memory });
    }
    const struct alloc_node *first = &allocation->nodes[0];
    return end_place(&text, cluster->nodes[first->node].name, first->cpu_milli, first->memory);
}

static char *where_there(const struct job_event *event)
{
    struct buffer text = { 0 };
    const struct gpu_grant *grants = event->gpus.items;
    const char *node = event->node != NULL ? event->node : "?";
    for (size_t i = 0; i < event->gpus.count; i++)
        write_place(&text, &(struct place){ grants[i].node != NULL ? grants[i].node : node, grants[i].index,
                               grants[i].slot, grants[i].share, grants[i].memory });
    return end_place(&text, node, event->cpu_milli, event->memory);
}

static void add_decision(struct replay *replay, struct decision decision)
{
    replay->decisions = xreallocarray(replay->decisions, replay->n_decisions + 1, sizeof(*replay->decisions));
    replay->decisions[replay->n_decisions++] = decision;
}

static void drop_decisions(struct replay *replay)
{
    for (size_t i = 0; i < replay->n_decisions; i++)
        free(replay->decisions[i].where);
    replay->n_decisions = replay->next = 0;
}

static uint64_t on_start(void *arg, uint64_t id, const struct allocation *allocation)
{
    struct replay *replay = arg;
    const struct job *job = replay_find(replay, id);
    struct decision decision = { .kind = DECIDED_START, .id = id, .array = job != NULL ? job->array_job : 0 };
    if (job != NULL && job_is_array(job)) {
        decision.array = id;
        decision.id = ++replay->last_given; // ids are given out one after the other
    }
    decision.where = where_here(sched_cluster(replay->sched), allocation);
    add_decision(replay, decision);
    return decision.id;
}

static void on_preempt(void *arg, uint64_t id, const char *why)
{
    struct replay *replay = arg;
    const struct job *job = replay_find(replay, id);
    bool is_leaving = job != NULL && (job->state == JOB_STOPPING || job_park(job)->phase == PARK_SAVING);
    if (!is_leaving) // it is being stopped or parked already
        add_decision(replay, (struct decision){ .kind = DECIDED_PREEMPT, .id = id });
}

static void on_reclaim(void *arg, uint64_t id, uint64_t parked)
{
    on_preempt(arg, id, NULL);
}

static void on_park(void *arg, uint64_t id, uint64_t guest)
{
    struct replay *replay = arg;
    const struct job *job = replay_find(replay, id);
    bool is_leaving = job != NULL && (job->state != JOB_RUNNING || job_park(job)->phase != PARK_NONE);
    if (is_leaving && job_park(job)->phase != PARK_SAVING)
        sched_park_refused(replay->sched, replay->last_ms, id); // as mgpud does
    if (!is_leaving)
        add_decision(replay, (struct decision){ .kind = DECIDED_PARK, .id = id, .guest = guest });
}

static bool may_park(void *arg, uint64_t id)
{
    return replay_may_park(arg, id);
}

static bool may_borrow(void *arg, uint64_t id)
{
    return replay_may_borrow(arg, id);
}

static void on_unreserve(void *arg, uint64_t reservation)
{
    add_decision(arg, (struct decision){ .kind = DECIDED_UNRESERVE, .id = reservation });
}

const struct sched_callbacks replay_callbacks = { .start = on_start,
    .preempt = on_preempt,
    .reclaim = on_reclaim,
    .park = on_park,
    .may_park = may_park,
    .may_borrow = may_borrow,
    .unreserve = on_unreserve };

/* "job 5 starts on box:0" */
static char *decision_text(const struct decision *decision)
{
    unsigned long long id = decision->id;
    switch (decision->kind) {
    case DECIDED_PREEMPT: return xasprintf("job %llu is preempted", id);
    case DECIDED_PARK:
        return xasprintf("job %llu is parked for job %llu", id, (unsigned long long)decision->guest);
    case DECIDED_UNRESERVE: return xasprintf("reservation %llu is released", id);
    default: break;
    }
    if (decision->array == 0)
        return xasprintf("job %llu starts on %s", id, decision->where);
    return xasprintf(
        "job %llu, of array %llu, starts on %s", id, (unsigned long long)decision->array, decision->where);
}

/* --- comparing --- */

static const struct cluster_change *change_of(const struct job_event *event)
{
    return event->type == EVENT_CLUSTER && event->change.count == 1 ? event->change.items : NULL;
}

static bool is_decision(const struct job_event *event)
{
    const struct cluster_change *change = change_of(event);
    if (change != NULL)
        return change->kind == CHANGE_UNRESERVE && change->text != NULL; // an administrator's has no reason
    bool gives_way = event->type == EVENT_PREEMPTED && event->cause == REQUEUE_PREEMPTED &&
                     event->park_cause != PARK_PREEMPTED;
    /* Otherwise requested by a user, or the job could not be parked instead. */
    bool is_parked = event->type == EVENT_PARK &&
                     (event->park_cause == PARK_PREEMPTED || park_cause_is_rule(event->park_cause));
    /* An early start is not one of a pass, and no pass depends on which job was chosen for it. */
    bool is_start = event->type == EVENT_ALLOCATED && event->is_early == 0 && event->behind == 0;
    return is_start || event->type == EVENT_RESTORING || gives_way || is_parked;
}

static bool is_settings(const struct job_event *event)
{
    const struct cluster_change *change = change_of(event);
    return change != NULL && change->kind == CHANGE_SETTINGS;
}

/* mgpud was started; other settings are taken up while it runs. */
static bool is_start(const struct job_event *event)
{
    return is_settings(event) && strncmp(change_of(event)->text, SETTINGS_LIVE, strlen(SETTINGS_LIVE)) != 0;
}

static struct decision decision_of(const struct replay *replay, const struct job_event *event)
{
    if (event->type == EVENT_CLUSTER)
        return (struct decision){ .kind = DECIDED_UNRESERVE, .id = change_of(event)->reservation };
    if (event->type == EVENT_PARK && park_cause_is_rule(event->park_cause))
        return (struct decision){ .kind = DECIDED_PARK, .id = event->job, .guest = event->park_guest };
    if (event->type == EVENT_PREEMPTED || event->type == EVENT_PARK)
        return (struct decision){ .kind = DECIDED_PREEMPT, .id = event->job };
    const struct job *job = replay_find(replay, event->job);
    return (struct decision){ .kind = DECIDED_START,
        .id = event->job,
        .array = job != NULL ? job->array_job : 0,
        .where = where_there(event) };
}

static int differ(const struct replay *replay, uint64_t seq, const struct decision *there,
    const struct decision *here, struct error *err)
{
    _cleanup_free_ char *theirs = there != NULL ? decision_text(there) : xstrdup("no decision");
    _cleanup_free_ char *ours = here != NULL ? decision_text(here) : xstrdup("no decision");
    (void)error_set(err, -EBADMSG, "seq %llu, at %lld ms: in the journal %.180s; here %.180s",
        (unsigned long long)seq, (long long)replay->at_ms, theirs, ours);
    if (replay->counts.starts > 1)
        return error_hint(err, "mgpud was restarted at seq %llu: see \"Limits\" in docs/journal.md",
            (unsigned long long)replay->start_seq);
    return err->code;
}

static bool decision_equal(const struct decision *a, const struct decision *b)
{
    return a->kind == b->kind && a->id == b->id && a->array == b->array && a->guest == b->guest &&
           ((a->where == NULL) == (b->where == NULL)) && (a->where == NULL || text_equal(a->where, b->where));
}

/* The event, which was applied already, is what was decided here next. */
static int compare(struct replay *replay, const struct job_event *event, struct error *err)
{
    struct decision there = decision_of(replay, event);
    const struct decision *here =
        replay->next < replay->n_decisions ? &replay->decisions[replay->next++] : NULL;
    int r = here != NULL && decision_equal(&there, here) ? 0 : differ(replay, event->seq, &there, here, err);
    replay->counts.decisions += r == 0;
    free(there.where);
    return r;
}

/* --- turns --- */

/* The id before the first one assigned to an element in the current turn: ids are assigned consecutively,
 * except for those reserved by an mgpud that was killed, or left out when a store was restored. */
static uint64_t last_id_before_turn(const struct replay *replay)
{
    for (size_t i = 0; replay->may_skip_ids && i < replay->n_turn; i++) {
        const struct job_event *event = &replay->turn[i].event;
        if (event->type == EVENT_SPLIT && event->element > replay->last_job)
            return event->element - 1;
    }
    return replay->last_job;
}

static void pass_at(struct replay *replay, int64_t at_ms)
{
    replay->last_given = last_id_before_turn(replay);
    replay->last_ms = at_ms; // for the callbacks: the turn may be a later one
    sched_pass(replay->sched, at_ms);
}

/* Runs the scheduler's own timers before this time. The original made no decision then. */
static int catch_up(struct replay *replay, int64_t until_ms, struct error *err)
{
    int64_t due_ms = sched_next_ms(replay->sched);
    while (due_ms < until_ms) {
        int64_t at_ms = due_ms > replay->last_ms ? due_ms : replay->last_ms + 1;
        if (at_ms >= until_ms)
            return 0;
        pass_at(replay, at_ms);
        if (replay->n_decisions > 0) {
            replay->at_ms = at_ms;
            return differ(replay, replay->last_seq + 1, NULL, &replay->decisions[0], err);
        }
        due_ms = sched_next_ms(replay->sched);
    }
    return 0;
}

/* Where the decisions of the turn begin: an element that a pass starts is split off right before. */
static size_t first_decision(const struct replay *replay)
{
    size_t at = 0;
    while (at < replay->n_turn && !is_decision(&replay->turn[at].event))
        at++;
    if (at < 2 || at == replay->n_turn)
        return at;
    const struct job_event *split = &replay->turn[at - 2].event, *event = &replay->turn[at].event;
    bool is_pair =
        split->type == EVENT_SPLIT && event->type == EVENT_ALLOCATED && split->element == event->job;
    return is_pair ? at - 2 : at;
}

/* A pass splits off the lowest index of an array that nothing keeps back; others were split off by request,
 * or because of their own dependency. */
static bool is_named_split(const struct replay *replay, const struct job_event *event)
{
    const struct job *array = replay_find(replay, event->job);
    struct sched_job_status status = { 0 };
    uint32_t lowest;
    if (event->type != EVENT_SPLIT || array == NULL || !job_is_array(array) ||
        !array_first(array->array_left, &lowest))
        return false;
    (void)sched_job_status(replay->sched, event->job, replay->at_ms, &status);
    return lowest != event->array_index || status.blockers != 0;
}

static int take_decided(struct replay *replay, const struct turn_event *turn, struct error *err)
{
    enum job_state before;
    const struct cluster_change *change = change_of(&turn->event);
    if (change != NULL)
        replay_note_change(replay, change);
    int r = change == NULL ? replay_apply(replay, turn, &before, err) : 0;
    return r == 0 && is_decision(&turn->event) ? compare(replay, &turn->event, err) : r;
}

static int apply_all(struct replay *replay, size_t from, size_t until, struct error *err)
{
    int r = 0;
    for (size_t i = from; r == 0 && i < until; i++) {
        const struct turn_event *turn = &replay->turn[i];
        const struct cluster_change *change = change_of(&turn->event);
        if (turn->event.type == EVENT_CLUSTER && change == NULL)
            r = error_set(err, -EPROTO, "it has no change");
        else if (is_start(&turn->event)) {
            replay->start_seq = turn->event.seq;
            replay->may_skip_ids = true;
            r = replay_start(replay, change->text, err);
        } else if (is_settings(&turn->event)) {
            r = replay_configure(replay, change->text, err);
        } else {
            r = change != NULL ? replay_change(replay, change, err) : replay_forward(replay, turn, err);
        }
        if (r < 0)
            return error_wrap(err, "seq %llu", (unsigned long long)turn->event.seq);
    }
    return 0;
}

/*
 * `is_cut`: mgpud died after this turn, or the export ends here. A pass is committed as a whole, after what
 * led to it: its decisions may be lost.
 */
static int run_turn(struct replay *replay, bool is_cut, struct error *err)
{
    if (replay->n_turn == 0)
        return 0;
    bool is_first = is_start(&replay->turn[0].event);
    int r = is_first ? 0 : catch_up(replay, replay->at_ms, err);
    size_t first = r == 0 ? first_decision(replay) : 0;
    if (r == 0)
        r = apply_all(replay, 0, first, err);
    if (r == 0 && first + 2 < replay->n_turn && is_named_split(replay, &replay->turn[first].event)) {
        r = apply_all(replay, first, first + 2, err);
        first += 2;
    }
    if (r < 0)
        return r;
    replay->last_ms = replay->at_ms;
    if (sched_is_dirty(replay->sched) || sched_next_ms(replay->sched) <= replay->at_ms)
        pass_at(replay, replay->at_ms);
    for (size_t i = first; r == 0 && i < replay->n_turn; i++)
        r = take_decided(replay, &replay->turn[i], err);
    if (r == 0 && replay->next < replay->n_decisions && !(is_cut && first == replay->n_turn))
        r = differ(replay, replay->last_seq, NULL, &replay->decisions[replay->next], err);
    drop_decisions(replay);
    return r;
}

static void drop_turn(struct replay *replay)
{
    for (size_t i = 0; i < replay->n_turn; i++)
        job_event_clear(&replay->turn[i].event);
    replay->n_turn = 0;
}

/* Numbers continue above a gap where the store was restored, or was found to be an old copy. */
static bool is_restored(const struct replay *replay, const struct job_event *event)
{
    return replay->last_seq != 0 && event->seq > replay->last_seq + RESTORE_GAP;
}

static int check_order(const struct replay *replay, const struct job_event *event, struct error *err)
{
    unsigned long long seq = event->seq, last = replay->last_seq;
    if (last == 0 && seq != 1)
        return error_set(err, -EPROTO, "the journal begins with seq %llu: a replay requires all of it", seq);
    if (last == 0 && !is_start(event))
        return error_set(err, -EPROTO,
            "the journal does not begin with a start (\"settings\"): an older mgpud created this store, and "
            "its decisions are not fully known");
    if (seq != last + 1 && !is_restored(replay, event))
        return error_set(err, -EPROTO, "seq %llu is followed by %llu: entries are missing", last, seq);
    if (event->wall_ms < replay->at_ms && !is_start(event))
        return error_set(err, -EPROTO, "seq %llu is earlier than the one before it", seq);
    return 0;
}

int replay_event(struct replay *replay, struct job_event *event, uint64_t command_hash, struct error *err)
{
    int r = check_order(replay, event, err);
    bool starts = is_start(event);
    if (r == 0 && (event->wall_ms != replay->at_ms || starts)) {
        r = run_turn(replay, starts, err);
        drop_turn(replay);
        replay->at_ms = event->wall_ms;
    }
    if (r < 0)
        return r;
    if (replay->n_turn == replay->turn_room) {
        replay->turn_room = replay->turn_room == 0 ? 64 : replay->turn_room * 2;
        replay->turn = xreallocarray(replay->turn, replay->turn_room, sizeof(*replay->turn));
    }
    replay->may_skip_ids |= is_restored(replay, event);
    replay->last_seq = event->seq;
    replay->counts.events++;
    replay->turn[replay->n_turn++] = (struct turn_event){ .event = *event, .command_hash = command_hash };
    *event = (struct job_event){ 0 };
    return 0;
}

int replay_end(struct replay *replay, struct error *err)
{
    int r = run_turn(replay, true, err);
    drop_turn(replay);
    return r;
}

struct replay_counts replay_counts(const struct replay *replay)
{
    return replay->counts;
}

struct replay *replay_new(void)
{
    return xcalloc(1, sizeof(struct replay));
}

static void replay_free(struct replay *replay)
{
    if (replay == NULL)
        return;
    drop_turn(replay);
    drop_decisions(replay);
    sched_free(replay->sched);
    for (size_t i = 0; i < replay->n_jobs; i++) {
        replay_admit_again(&replay->jobs[i]);
        job_free(replay->jobs[i].job);
    }
    for (size_t i = 0; i < replay->n_marks; i++)
        cluster_change_clear(&replay->marks[i]);
    for (size_t i = 0; i < replay->n_sizes; i++)
        cluster_change_clear(&replay->sizes[i]);
    for (size_t i = 0; i < replay->n_reservations; i++)
        cluster_change_clear(&replay->reservations[i]);
    for (size_t i = 0; i < replay->n_rows; i++) {
        free(replay->rows[i].kind);
        free(replay->rows[i].key);
        buffer_clear(&replay->rows[i].value);
    }
    free(replay->jobs);
    free(replay->marks);
    free(replay->sizes);
    free(replay->reservations);
    free(replay->rows);
    park_refusals_clear(&replay->refusals);
    free(replay->turn);
    free(replay->decisions);
    free(replay);
}

void replay_freep(struct replay **replay)
{
    replay_free(*replay);
}
