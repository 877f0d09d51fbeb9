/* SPDX-License-Identifier: MIT */
/*
 * Elements of an array that are committed behind another one of it, on the same GPUs, shortly before that one
 * probably ends (job/behind.h, docs/decisions/0053-elements-and-stretches.md). Their node begins them by
 * itself when the GPUs are free and clean. When the one before leaves its GPUs, the one behind has them, in
 * the same turn and before the pass.
 *
 *      leader:    allocated ──────────────────────── ended
 *      follower:              allocated (behind) ────inherits──── ended
 *                                 └──recalled──> returned (its node has no verdict yet)
 *
 * When a leader ends is judged by how long the latest elements of its array had their GPUs: mean and mean
 * deviation, as TCP has them of its round trips. If it takes longer, the node is asked to give the follower
 * back, on condition that it has not begun. That needs no event: a follower that no node was asked for
 * begins. The same is done for a user who wants to change it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/access.h"
#include "controller/core/attempt.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/send.h"
#include "controller/core/split.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/array.h"
#include "job/behind.h"

#define SAMPLES_MIN   3U // elements that must have ended
#define SMOOTH_MEAN   8  // how slowly the mean follows, and
#define SMOOTH_OFF    4  // the deviation, which
#define OFF_LATE      4  // makes an element late when it is above the mean by so much
#define OFF_EARLY     2  // an element that is below it by so much may end before a commit that waits
#define PATIENCE_PART 4  // a commit may wait for a quarter of what an element takes
#define NEAR_PART     8  // a change of the expected time by this part of it is worth another look

#define LOOK_MS         50 // between two looks at all elements that have GPUs
#define RECALL_AGAIN_MS 5000

/* An element that has its GPUs. There may be thousands, so a turn looks at those that are due. */
struct holder {
    struct core_entry *entry;
    int64_t since_ms;
    int64_t due_ms; // wall clock: when it comes near its end; 0: in each turn
};

struct core_behind {
    struct holder *holders;
    size_t n_holders, capacity;
    size_t n_followers;
    bool is_moved;     // the pace of an array has changed since
    int64_t looked_ms; // wall clock: all elements were looked at
    int64_t due_ms;    // when an element comes near its end, or is late; TIME_NEVER
};

static bool is_on(const struct core *core)
{
    return core->options.early.elements_ms > 0;
}

/* --- how long elements take --- */

/* NULL: the array is not in memory any more, or too few of its elements have ended. */
static const struct element_pace *pace_of(const struct core_entry *element)
{
    const struct core_entry *array = core_extra(element)->array;
    const struct element_pace *pace = array != NULL ? &core_extra(array)->pace : NULL;
    return pace != NULL && pace->samples >= SAMPLES_MIN ? pace : NULL;
}

/* The next element must be committed behind this one before it ends, and is at most so much earlier. */
static int64_t patience_ms(const struct core *core, const struct element_pace *pace)
{
    int64_t short_ms = pace->mean_ms - OFF_EARLY * pace->off_ms, ahead_ms = core->options.early.elements_ms;
    int64_t part_ms = (short_ms < ahead_ms ? short_ms : ahead_ms) / PATIENCE_PART;
    if (pace->samples < SAMPLES_MIN || part_ms < 0)
        return 0;
    return part_ms < ELEMENT_PATIENCE_MS ? part_ms : ELEMENT_PATIENCE_MS;
}

static void learn(struct core *core, struct core_entry *array, int64_t took_ms)
{
    struct element_pace *pace = &core_make_extra(array)->pace;
    if (pace->samples == 0)
        *pace = (struct element_pace){ .mean_ms = took_ms, .off_ms = took_ms / 2 };
    int64_t error_ms = took_ms - pace->mean_ms;
    pace->off_ms += ((error_ms < 0 ? -error_ms : error_ms) - pace->off_ms) / SMOOTH_OFF;
    pace->mean_ms += error_ms / SMOOTH_MEAN;
    pace->samples += pace->samples < SAMPLES_MIN;
    pace->patience_ms = patience_ms(core, pace);
    int64_t near_ms = pace->mean_ms + pace->off_ms, moved_ms = near_ms - pace->near_ms;
    if (pace->samples < SAMPLES_MIN || (moved_ms < 0 ? -moved_ms : moved_ms) <= pace->near_ms / NEAR_PART)
        return;
    pace->near_ms = near_ms;
    core->behind->is_moved = true;
}

/* When one is put behind this one; TIME_NEVER: not known. */
static int64_t near_ms(const struct core *core, const struct holder *holder)
{
    const struct element_pace *pace = pace_of(holder->entry);
    return pace != NULL ? holder->since_ms + pace->near_ms - core->options.early.elements_ms : TIME_NEVER;
}

/* The time from which no follower should wait for its GPUs any more. */
static int64_t late_ms(const struct core *core, const struct holder *holder)
{
    const struct element_pace *pace = pace_of(holder->entry);
    int64_t expected_ms = pace != NULL ? pace->mean_ms + OFF_LATE * pace->off_ms : 0;
    return holder->since_ms + expected_ms + core->options.early.elements_ms;
}

static void check_by(struct core *core, int64_t at_ms)
{
    int64_t boot_ms = at_ms == TIME_NEVER ? TIME_NEVER : core_boot_at(core, at_ms);
    if (boot_ms < core->behind->due_ms)
        core->behind->due_ms = boot_ms;
}

/* --- who has GPUs --- */

static bool is_leader(const struct job *job)
{
    return job->array_job != 0 && job->grants.count > 0 && !job_is_wide(job) && job_holds_gpus(job);
}

static void add_holder(struct core *core, struct core_entry *entry)
{
    struct core_behind *behind = core->behind;
    if (behind->n_holders == behind->capacity) {
        behind->capacity = behind->capacity == 0 ? 16 : behind->capacity * 2;
        behind->holders = xreallocarray(behind->holders, behind->capacity, sizeof(*behind->holders));
    }
    struct holder *holder = &behind->holders[behind->n_holders++];
    *holder = (struct holder){ .entry = entry, .since_ms = core->now_ms };
    core_make_extra(entry)->holder = behind->n_holders;
}

static void remove_holder(struct core *core, struct core_entry *entry)
{
    struct core_behind *behind = core->behind;
    struct core_extra *extra = core_make_extra(entry);
    struct holder *holder = &behind->holders[extra->holder - 1];
    int64_t took_ms = core->now_ms - holder->since_ms;
    *holder = behind->holders[--behind->n_holders];
    core_make_extra(holder->entry)->holder = extra->holder;
    extra->holder = 0;
    if (entry->job->state == JOB_DONE && entry->job->end == END_EXIT && extra->array != NULL)
        learn(core, extra->array, took_ms);
}

static void note_holder(struct core *core, struct core_entry *entry)
{
    bool is_known = core_extra(entry)->holder != 0, holds = is_leader(entry->job);
    if (holds && !is_known)
        add_holder(core, entry);
    else if (!holds && is_known)
        remove_holder(core, entry);
}

/* --- in its place --- */

static void link_behind(struct core *core, struct core_entry *follower)
{
    struct core_entry *leader = core_find(core, job_park(follower->job)->behind);
    if (leader == NULL)
        return; // at a start: it has ended
    core_make_extra(leader)->follower = follower;
    core_make_extra(follower)->leader = leader;
    core->behind->n_followers++;
}

static void unlink_behind(struct core *core, struct core_entry *follower)
{
    struct core_entry *leader = core_extra(follower)->leader;
    if (leader == NULL)
        return;
    core_make_extra(leader)->follower = NULL;
    core_make_extra(follower)->leader = NULL;
    core->behind->n_followers--;
}

static void inherit(struct core *core, struct core_entry *follower)
{
    const struct job *job = follower->job;
    _cleanup_(job_event_clear) struct job_event event = { .type = EVENT_INHERITS,
        .attempt = job->attempt,
        .node = xstrdup(job->node),
        .cpu_milli = job_run(job)->cpu_milli,
        .memory = job_run(job)->memory };
    gpu_grants_copy(&event.gpus, &job->grants);
    core_change(core, follower, &event, NULL);
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    if (job->array_job == 0)
        return;
    if (news->event->behind != 0)
        link_behind(core, entry);
    else if (!job_is_behind(job))
        unlink_behind(core, entry);
    note_holder(core, entry);
    struct core_entry *follower = core_extra(entry)->follower;
    if (follower != NULL && !job_holds_gpus(job))
        inherit(core, follower);
}

/* --- which element, and when --- */

/* Its dependencies were on ends, which are final: a job that had started may be in the queue again. */
static bool has_settled(const struct job_ask *ask)
{
    return ask->after == NULL || (strstr(ask->after, after_kind_name(AFTER_START)) == NULL &&
                                     strstr(ask->after, after_kind_name(AFTER_CORR)) == NULL);
}

/* Nothing but its turn keeps the array's next element from these GPUs. */
static bool is_plain(const struct core *core, const struct job *array)
{
    const struct job_ask *ask = array->ask;
    return has_settled(ask) && ask->nodes <= 1 && ask->gpu_mem == 0 && ask->gpu_share == 0 && !ask->early &&
           array->hold == 0 && array->state == JOB_QUEUED && !job_is_split_up(array) &&
           core->options.sched.parking != PARKING_AUTO;
}

/* The next job of all that wait is an element of this array, and it might be given what the leader has. */
static bool is_next(const struct core *core, uint64_t array, const struct job *leader)
{
    struct sched_job_status status, leading;
    const struct cluster_node *node = cluster_find(sched_cluster(core->sched), leader->node);
    return node != NULL && sched_array_is_next(core->sched, array) &&
           sched_job_status(core->sched, array, core->now_ms, &status) &&
           sched_job_status(core->sched, leader->id, core->now_ms, &leading) &&
           request_equal(&status.key->request, &leading.key->request) &&
           cluster_node_admits(node, &status.key->request) && cluster_find_bar(node, leader->uid) == NULL;
}

static bool is_reserved(const struct core *core, const struct cluster_node *node, const char *uuid)
{
    size_t count;
    const struct sched_reservation *reservations = sched_reservations(core->sched, &count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < reservations[i].n_gpus; k++)
            if (reservations[i].gpus[k].node == node->position &&
                text_equal(node->gpus[reservations[i].gpus[k].gpu].uuid, uuid))
                return true;
    return false;
}

/* Its GPUs would be given to the next element, too. */
static bool is_place_open(const struct core *core, const struct job *leader)
{
    const struct cluster_node *node = cluster_find(sched_cluster(core->sched), leader->node);
    const struct gpu_grant *grants = leader->grants.items;
    for (size_t i = 0; node != NULL && i < leader->grants.count; i++) {
        const struct cluster_gpu *gpu = cluster_find_gpu(node, grants[i].uuid);
        if (gpu == NULL || !cluster_gpu_is_open(node, gpu) || is_reserved(core, node, grants[i].uuid))
            return false;
    }
    return node != NULL && node->is_up && !node->is_drained;
}

static bool takes_back(const struct core_node *node)
{
    return node != NULL && node->is_up && node->hello.takes_back != 0 && node->n_orphaned == 0 &&
           !node->is_behind_gap;
}

static bool may_lead(const struct core *core, const struct core_entry *leader)
{
    const struct job *job = leader->job;
    const struct core_entry *array = core_extra(leader)->array;
    bool goes_on = (job->state == JOB_STARTING || job->state == JOB_RUNNING) &&
                   job_park(job)->phase == PARK_NONE && job_run(job)->suspended_ms == 0;
    return is_on(core) && goes_on && array != NULL && is_next(core, array->job->id, job) &&
           is_plain(core, array->job) && takes_back(core_find_node(core, job->node)) &&
           is_place_open(core, job);
}

static void put_behind(struct core *core, struct core_entry *leader)
{
    const struct job *job = leader->job;
    struct core_entry *array = core_extra(leader)->array;
    uint32_t index;
    if (!array_first(array->job->array_left, &index))
        return;
    struct core_entry *entry = core_split_off(core, array, index, array->job->ask->after);
    struct job_event event = {
        .type = EVENT_ALLOCATED,
        .attempt = entry->job->attempt + 1,
        .token = core_next_token(core, entry),
        .node = xstrdup(job->node),
        .boot_id = xstrdup(core_find_node(core, job->node)->hello.boot_id),
        .cpu_milli = job_run(job)->cpu_milli,
        .memory = job_run(job)->memory,
        .node_lease_ms = core_node_lease_ms(core, entry->job),
        .behind = job->id,
    };
    gpu_grants_copy(&event.gpus, &job->grants);
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
}

/* --- taken back --- */

static bool may_follow(
    const struct core *core, const struct holder *holder, const struct core_entry *follower)
{
    const struct core_entry *array = core_extra(follower)->array;
    const struct job *leader = holder->entry->job;
    if (core_extra(follower)->wanted == follower->job->token)
        return false;
    bool goes_on =
        !leader->is_requeued && job_park(leader)->phase == PARK_NONE && job_run(leader)->suspended_ms == 0;
    return goes_on && (array == NULL || array->job->hold == 0) && late_ms(core, holder) > core->now_ms &&
           is_place_open(core, leader) && is_on(core);
}

/* Again on each connection, because what is under way is lost with it, and now and then: a node does not take
 * back one that it compares with what it has prepared. */
static void recall(struct core *core, struct core_entry *follower)
{
    const struct job *job = follower->job;
    const struct core_node *node = core_find_node(core, job->node);
    struct core_extra *extra = core_make_extra(follower);
    if (job->state != JOB_STARTING || follower->changed_in > core->durable_batch || !takes_back(node))
        return;
    bool is_asked = extra->recalled == job->token && extra->recalled_link == node->link;
    if (!is_asked || core->boot_ms - extra->recalled_ms >= RECALL_AGAIN_MS) {
        extra->recalled = job->token;
        extra->recalled_link = node->link;
        extra->recalled_ms = core->boot_ms;
        core_send_recall(core, job, node->link);
    }
    if (extra->recalled_ms + RECALL_AGAIN_MS < core->behind->due_ms)
        core->behind->due_ms = extra->recalled_ms + RECALL_AGAIN_MS;
}

bool core_take_back(
    struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id)
{
    struct core_entry *entry = core_find(core, id);
    struct error ignored;
    if (entry == NULL || !job_waits_behind(entry->job) ||
        !takes_back(core_find_node(core, entry->job->node)) ||
        core_check_control(core, who, id, entry, &ignored) < 0)
        return false;
    core_begin(core, boot_ms, wall_ms);
    core_make_extra(entry)->wanted = entry->job->token;
    return true;
}

/* When to look at it again: 0 in the next turn; TIME_NEVER when others of its array take much longer. */
static int64_t check_holder(struct core *core, const struct holder *holder)
{
    struct core_entry *follower = core_extra(holder->entry)->follower;
    int64_t near = near_ms(core, holder), late = late_ms(core, holder);
    if (follower != NULL && !may_follow(core, holder, follower))
        recall(core, follower);
    else if (follower != NULL)
        check_by(core, late);
    else if (near > core->now_ms || late <= core->now_ms)
        return near > core->now_ms ? near : TIME_NEVER;
    else if (may_lead(core, holder->entry))
        put_behind(core, holder->entry);
    return 0;
}

/* True if an array has another pace, which concerns those of its elements that run. Arrays whose elements
 * differ have another one at each end, so all are looked at now and then only. */
static bool takes_look(struct core *core)
{
    struct core_behind *behind = core->behind;
    int64_t since_ms = core->now_ms - behind->looked_ms;
    if (!behind->is_moved || (since_ms >= 0 && since_ms < LOOK_MS))
        return false;
    behind->is_moved = false;
    behind->looked_ms = core->now_ms;
    return true;
}

static bool turn(struct core *core)
{
    struct core_behind *behind = core->behind;
    uint64_t before = core->last_event;
    bool has_work = is_on(core) || behind->n_followers > 0, is_moved = takes_look(core);
    behind->due_ms = TIME_NEVER;
    if (behind->is_moved)
        check_by(core, behind->looked_ms + LOOK_MS);
    for (size_t i = 0; has_work && i < behind->n_holders; i++) {
        int64_t due_ms = behind->holders[i].due_ms;
        if (is_moved || due_ms <= core->now_ms)
            due_ms = check_holder(core, &behind->holders[i]);
        behind->holders[i].due_ms = due_ms;
        check_by(core, due_ms > core->now_ms ? due_ms : TIME_NEVER);
    }
    return core->last_event != before;
}

static int64_t next_ms(const struct core *core)
{
    return core->behind->due_ms;
}

/* The end of the turn follows. */
static void run(struct core *core)
{
    if (core->behind->due_ms <= core->boot_ms)
        core->behind->due_ms = TIME_NEVER;
}

/* --- a start --- */

static void on_resume(struct core *core, struct core_entry *entry)
{
    if (job_is_behind(entry->job))
        link_behind(core, entry);
    if (entry->job->array_job != 0)
        note_holder(core, entry);
}

/* Of a store that was damaged, or written by hand. */
static void begin(struct core *core)
{
    for (struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct core_entry *leader = core_extra(entry)->leader;
        if (job_is_behind(entry->job) && (leader == NULL || !job_holds_gpus(leader->job)))
            inherit(core, entry);
    }
}

static void init(struct core *core)
{
    core->behind = xcalloc(1, sizeof(*core->behind));
    core->behind->due_ms = TIME_NEVER;
}

static void clear(struct core *core)
{
    free(core->behind->holders);
    free(take_ptr(core->behind));
}

const struct core_concern core_concern_behind = {
    .name = "behind",
    .init = init,
    .free = clear,
    .resume = on_resume,
    .begin = begin,
    .events = CORE_ON_ALL,
    .event = on_event,
    .turn = turn,
    .next_ms = next_ms,
    .run = run,
};
