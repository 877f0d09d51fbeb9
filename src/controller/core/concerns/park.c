/* SPDX-License-Identifier: MIT */
/*
 * Parked jobs (job/park.h). Sends PARK for a job whose durable state is SAVING or RESTORING, and turns the
 * results into an event. A refusal leaves the job as it was: running, or parked. A job that was to give its
 * GPUs back and cannot be parked is then requeued or ended as if it had not asked for parking.
 *
 * Its GPUs are free with the event `parked`, which is created only from a PARK_RESULT of each rank: until
 * then nothing else can be started on them.
 *
 * A job on several nodes is parked and returned as a whole (tests/models/park_wide.pml):
 *
 *   park     SAVE to all ranks ──all are saved──> parked
 *               └──one refuses──> it runs: RETURN with the same number to all, which undoes what was saved
 *   return   CHECK to all ranks ──all could return──> RETURN to all ──all are back──> it runs
 *               └──one could not, and none is back──> parked, and tried again later
 *
 * A job that is parked in an older copy of the store but may run on its node is saved again (job/park.h).
 *
 * A rank that refuses after others have begun to return is tried again: the GPUs of all ranks are the job's.
 * The answers are in memory only. They are requested again by a controller that starts; a rank that is back
 * already says so.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/park.h"
#include "controller/core/send.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"

#define RETRY_MS 5000 // of a rank that could not return with the others

#define PARKS                                                                                                \
    (CORE_ON(EVENT_PARK) | CORE_ON(EVENT_PARKED) | CORE_ON(EVENT_UNPARK) | CORE_ON(EVENT_RESTORING) |        \
        CORE_ON(EVENT_UNPARKED) | CORE_ON(EVENT_RECONCILED) | CORE_ON(EVENT_INHERITS))

struct core_parks {
    int64_t next_ms;  // boot clock: the earliest return of a parked job; TIME_NEVER: none
    int64_t retry_ms; // boot clock: when ranks that refused to return are tried again; TIME_NEVER: none did
    bool has_guests;  // a job is parked for another
    bool has_memory;  // host memory of a job is booked outside the ledger
};

/* Of one rank to the job's latest order. */
struct park_answer {
    uint32_t outcome; // enum park_outcome; 0: none yet
    bool is_back;     // it has returned
    uint64_t bytes;
    int64_t waited_ms;
    char *text;
};

struct park_answers {
    uint64_t token;
    uint32_t number;
    bool is_checked; // all could return: they are to
    bool is_undoing; // one refused to be saved: the others are to return
    size_t count;
    struct park_answer items[];
};

/* --- answers --- */

static void drop(struct core_entry *entry)
{
    struct park_answers *answers = core_extra(entry)->parking;
    if (answers == NULL)
        return;
    for (size_t i = 0; i < answers->count; i++)
        free(answers->items[i].text);
    free(answers);
    core_make_extra(entry)->parking = NULL;
}

/* Those to the latest order, made if there are none yet. */
static struct park_answers *take_answers(struct core_entry *entry)
{
    const struct job *job = entry->job;
    struct park_answers *answers = core_extra(entry)->parking;
    if (answers != NULL && answers->token == job->token && answers->number == job_park(job)->number)
        return answers;
    drop(entry);
    size_t count = job_node_count(job);
    answers = xcalloc(1, sizeof(*answers) + count * sizeof(answers->items[0]));
    answers->token = job->token;
    answers->number = job_park(job)->number;
    answers->count = count;
    core_make_extra(entry)->parking = answers;
    return answers;
}

static void clear_answer(struct park_answer *answer)
{
    free(answer->text);
    *answer = (struct park_answer){ 0 };
}

static void write_answer(
    const struct job *job, struct park_answer *answer, const struct message_park_result *result)
{
    clear_answer(answer);
    answer->outcome = result->outcome;
    answer->is_back = result->action == PARK_RETURN && result->outcome == PARK_DONE;
    answer->bytes = result->bytes;
    answer->waited_ms = result->waited_ms > 0 ? result->waited_ms : 0;
    if (result->outcome == PARK_DONE)
        return;
    const char *why = result->text != NULL ? result->text : "no reason";
    answer->text = job_is_wide(job) ? xasprintf("node %s: %.900s", job_node_name(job, result->id.rank), why)
                                    : xstrdup(why);
}

static const struct park_answer *find_answer(const struct park_answers *answers, enum park_outcome outcome)
{
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].outcome == (uint32_t)outcome)
            return &answers->items[i];
    return NULL;
}

static size_t count_answers(const struct park_answers *answers, bool is_back)
{
    size_t count = 0;
    for (size_t i = 0; i < answers->count; i++)
        count += is_back ? answers->items[i].is_back : answers->items[i].outcome != 0;
    return count;
}

/* --- orders --- */

static enum park_action find_action(struct core_entry *entry)
{
    const struct job *job = entry->job;
    if (job_park(job)->phase == PARK_SAVING || job_park_is_unconfirmed(job))
        return PARK_SAVE;
    bool must_check = job_park(job)->phase == PARK_RESTORING && job_is_wide(job);
    return must_check && !take_answers(entry)->is_checked ? PARK_CHECK : PARK_RETURN;
}

static void send_order(struct core *core, struct core_entry *entry, uint32_t rank)
{
    const struct job *job = entry->job;
    const char *name = job_node_name(job, rank);
    const struct core_node *node = core_find_node(core, name);
    if (node != NULL && node->is_up)
        core_send_park(core, job, rank, find_action(entry), core_park_room(core, name, job->id), node->link);
}

/* Its nodes have been told something, and their answers decide. */
static bool is_in_transit(const struct job *job)
{
    uint32_t phase = job_park(job)->phase;
    return phase == PARK_SAVING || phase == PARK_RESTORING || job_park_is_unconfirmed(job);
}

static void act(struct core *core, struct core_entry *entry)
{
    const struct job *job = entry->job;
    uint32_t phase = job_park(job)->phase;
    if (!job_state_is_active(job->state) || entry->changed_in > core->durable_batch)
        return;
    bool is_undoing =
        phase == PARK_NONE && core_extra(entry)->parking != NULL && take_answers(entry)->is_undoing;
    bool is_ordered = job->state == JOB_RUNNING && is_in_transit(job);
    if (!is_undoing && !is_ordered)
        return;
    struct park_answers *answers = take_answers(entry);
    for (uint32_t rank = 0; rank < answers->count; rank++)
        if (is_undoing || answers->items[rank].outcome == 0)
            send_order(core, entry, rank);
    if (is_undoing)
        drop(entry); // a node that connects later is told then
}

/* A job that was to be parked, and runs since: an agent that died may have left it stopped after it had given
 * the order up. */
static void reconcile(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    const struct job *job = entry->job;
    uint32_t phase = job_park(job)->phase;
    int rank = job_rank_on(job, node->name);
    bool was_ordered = phase == PARK_NONE && job_park(job)->number > 0;
    if (job->state != JOB_RUNNING || rank < 0 || entry->changed_in > core->durable_batch)
        return;
    if (is_in_transit(job))
        clear_answer(&take_answers(entry)->items[rank]);
    if (was_ordered || is_in_transit(job))
        send_order(core, entry, (uint32_t)rank);
}

/* --- results --- */

/* `why`: NULL when all went well. */
static void change(struct core *core, struct core_entry *entry, enum job_event_type type, const char *why)
{
    struct job_event event = { .type = type, .attempt = entry->job->attempt };
    event.text = xstrdup(why);
    const struct park_answers *answers = core_extra(entry)->parking;
    for (size_t i = 0; type == EVENT_PARKED && why == NULL && i < answers->count; i++) {
        uint64_t bytes = answers->items[i].bytes;
        event.park_bytes += bytes;
        event.park_rank_bytes = bytes > event.park_rank_bytes ? bytes : event.park_rank_bytes;
    }
    if (type == EVENT_UNPARKED && job_is_early(entry->job) && answers != NULL)
        event.waited_ms = answers->items[0].waited_ms;
    core_change(core, entry, &event, NULL);
    free(event.text);
}

/* Its GPUs were needed, or its time was up: what happens to a job that is not parked. */
static void fall_back(struct core *core, struct core_entry *entry, uint32_t cause)
{
    if (cause == PARK_TIME_LIMIT) {
        core_stop_job(core, entry, core->options.admin_uid, END_TIME_LIMIT);
    } else if (cause == PARK_PREEMPTED) {
        struct job_event event = {
            .type = EVENT_PREEMPTED, .attempt = entry->job->attempt, .park_cause = PARK_PREEMPTED
        };
        event.text = xstrdup("other jobs need its GPUs, and it could not be parked");
        core_change(core, entry, &event, NULL);
        free(event.text);
    }
}

static void lose(struct core *core, struct core_entry *entry, const struct park_answer *lost)
{
    change(core, entry, EVENT_UNPARKED, lost->text);
    core_stop_job(core, entry, core->options.admin_uid, END_GPU_FAULT);
}

/* The first refusal counts: the others need not finish. */
static void conclude_save(struct core *core, struct core_entry *entry, struct park_answers *answers)
{
    const struct park_answer *lost = find_answer(answers, PARK_LOST);
    const struct park_answer *refused = find_answer(answers, PARK_REFUSED);
    uint32_t cause = job_park(entry->job)->cause;
    if (lost != NULL) {
        lose(core, entry, lost);
    } else if (refused != NULL) {
        answers->is_undoing = job_is_wide(entry->job);
        change(core, entry, EVENT_UNPARKED, refused->text);
        fall_back(core, entry, cause);
    } else if (count_answers(answers, false) == answers->count) {
        change(core, entry, EVENT_PARKED, NULL);
    }
}

/* One that ran although it is parked is saved now, or runs on: in both cases it returns in order. */
static void conclude_unconfirmed(struct core *core, struct core_entry *entry, struct park_answers *answers)
{
    const struct park_answer *lost = find_answer(answers, PARK_LOST);
    struct job_event event = {
        .type = EVENT_UNPARK, .attempt = entry->job->attempt, .uid = core->options.admin_uid
    };
    if (lost != NULL)
        core_stop_job(core, entry, core->options.admin_uid, END_GPU_FAULT);
    else if (count_answers(answers, false) == answers->count)
        core_change(core, entry, &event, NULL);
}

/* All have answered whether they could return. */
static void conclude_check(struct core *core, struct core_entry *entry, struct park_answers *answers)
{
    const struct park_answer *refused = find_answer(answers, PARK_REFUSED);
    if (refused != NULL && count_answers(answers, true) == 0) {
        change(core, entry, EVENT_PARKED, refused->text);
        return;
    }
    answers->is_checked = true;
    for (size_t i = 0; i < answers->count; i++)
        if (!answers->items[i].is_back)
            clear_answer(&answers->items[i]);
    act(core, entry);
}

static void conclude_return(struct core *core, struct core_entry *entry, struct park_answers *answers)
{
    const struct park_answer *lost = find_answer(answers, PARK_LOST);
    const struct park_answer *refused = find_answer(answers, PARK_REFUSED);
    bool is_wide = job_is_wide(entry->job);
    if (lost != NULL)
        lose(core, entry, lost);
    else if (!is_wide)
        change(core, entry, refused != NULL ? EVENT_PARKED : EVENT_UNPARKED,
            refused != NULL ? refused->text : NULL);
    else if (count_answers(answers, true) == answers->count)
        change(core, entry, EVENT_UNPARKED, NULL);
    else if (!answers->is_checked && count_answers(answers, false) == answers->count)
        conclude_check(core, entry, answers);
    else if (answers->is_checked && refused != NULL)
        core->parks->retry_ms = core->boot_ms + RETRY_MS;
}

static void on_result(struct core *core, struct core_node *node, const void *message)
{
    const struct message_park_result *result = message;
    struct core_entry *entry = core_find_current(core, node, &result->id, result->token);
    if (entry == NULL || entry->job->state != JOB_RUNNING || job_park(entry->job)->number != result->number ||
        result->outcome < PARK_DONE || result->outcome > PARK_LOST)
        return;
    uint32_t phase = job_park(entry->job)->phase;
    if (phase == PARK_NONE && result->outcome == PARK_LOST)
        core_stop_job(core, entry, core->options.admin_uid, END_GPU_FAULT); // it was to run on
    if (!is_in_transit(entry->job))
        return;
    struct park_answers *answers = take_answers(entry);
    if (answers->is_checked && result->action == PARK_CHECK)
        return; // a late copy
    write_answer(entry->job, &answers->items[result->id.rank], result);
    if (phase == PARK_SAVING)
        conclude_save(core, entry, answers);
    else if (phase == PARK_PARKED)
        conclude_unconfirmed(core, entry, answers);
    else
        conclude_return(core, entry, answers);
    for (size_t rank = 0; rank < job_node_count(entry->job);
         rank++) { // its host memory is booked in another way
        struct core_node *place = core_find_node(core, job_node_name(entry->job, rank));
        if (place != NULL && place->is_up)
            core_node_changed(core, place);
    }
}

/* --- returns at a time --- */

static void scan_jobs(struct core *core)
{
    core->parks->next_ms = TIME_NEVER;
    core->parks->has_memory = core->parks->has_guests = false;
    for (const struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct job_park *park = job_park(entry->job);
        core->parks->has_memory |= park->memory != 0 || park->kept_memory != 0 || park->kept_cpu_milli != 0;
        core->parks->has_guests |= park->phase != PARK_NONE && park->guest != 0;
        int64_t at_ms = core->boot_ms + park->return_ms - core->now_ms;
        if (park->phase == PARK_PARKED && park->return_ms != 0 && at_ms < core->parks->next_ms)
            core->parks->next_ms = at_ms;
    }
}

/* With the end of an attempt that was parked, its host memory is free. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    bool is_over = (news->bits & CORE_ON_OVER) != 0;
    bool had_memory = core->parks->has_memory; // or CPUs, outside the ledger
    if (is_over)
        drop(entry);
    bool is_early = news->event->type == EVENT_ALLOCATED && news->event->is_early != 0;
    if ((news->bits & PARKS) != 0 || is_early || (is_over && had_memory))
        scan_jobs(core);
    for (size_t i = 0; (is_early || (is_over && had_memory)) && i < core->n_nodes; i++)
        if (core->nodes[i].is_up)
            core_node_changed(core, &core->nodes[i]);
}

uint64_t core_park_host(const struct core *core, uint64_t guest)
{
    for (const struct core_entry *entry = core->parks->has_guests ? core->active_first : NULL; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct job_park *park = job_park(entry->job);
        if (park->phase != PARK_NONE && park->guest == guest)
            return entry->job->id;
    }
    return 0;
}

static int64_t next_ms(const struct core *core)
{
    const struct core_parks *parks = core->parks;
    return parks->next_ms < parks->retry_ms ? parks->next_ms : parks->retry_ms;
}

static void retry(struct core *core)
{
    core->parks->retry_ms = TIME_NEVER;
    for (struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        if (entry->job->state != JOB_RUNNING || job_park(entry->job)->phase != PARK_RESTORING)
            continue;
        struct park_answers *answers = take_answers(entry);
        for (size_t i = 0; answers->is_checked && i < answers->count; i++)
            if (answers->items[i].outcome == PARK_REFUSED)
                clear_answer(&answers->items[i]);
        act(core, entry);
    }
}

static void run(struct core *core)
{
    if (core->parks->retry_ms <= core->boot_ms)
        retry(core);
    if (core->parks->next_ms > core->boot_ms)
        return;
    for (struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct job_park *park = job_park(entry->job);
        if (entry->job->state != JOB_RUNNING || park->phase != PARK_PARKED || park->return_ms == 0 ||
            park->return_ms > core->now_ms)
            continue;
        struct job_event event = {
            .type = EVENT_UNPARK, .attempt = entry->job->attempt, .uid = core->options.admin_uid
        };
        core_change(core, entry, &event, NULL);
    }
    scan_jobs(core);
}

static void init(struct core *core)
{
    core->parks = xcalloc(1, sizeof(*core->parks));
    core->parks->next_ms = TIME_NEVER;
    core->parks->retry_ms = TIME_NEVER;
}

static void on_gone(struct core *core, struct core_entry *entry)
{
    drop(entry);
}

static void clear(struct core *core)
{
    free(core->parks);
}

static const struct core_message messages[] = {
    { MESSAGE_PARK_RESULT, on_result },
    { 0, NULL },
};

const struct core_concern core_concern_park = {
    .name = "park",
    .init = init,
    .free = clear,
    .begin = scan_jobs,
    .events = PARKS | CORE_ON(EVENT_ALLOCATED) | CORE_ON_OVER,
    .event = on_event,
    .act = act,
    .gone = on_gone,
    .reconcile = reconcile,
    .messages = messages,
    .stepped = scan_jobs,
    .next_ms = next_ms,
    .run = run,
};
