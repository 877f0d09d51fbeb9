/* SPDX-License-Identifier: MIT */
/*
 * Detects a store that is older than the actions taken on the basis of it: a snapshot, a copy of the files, a
 * disk that was rolled back. The store itself recognises some of these (store_check.c). Others are recognised
 * with the help of the nodes: they are sent the epoch, the start time of this mgpud and the last durable
 * event, and HELLO returns them. A node that knows of a later event proves that the store is old.
 *
 * Numbers then continue above all that can have been assigned, and every node is held: it is drained, and its
 * unknown attempts are not stopped, until an administrator resumes it. A node that connects only later, when
 * mgpud may have been restarted, is recognised by the epoch that it has accepted, which is from before the
 * gap. Such a node is refused until its drain, and the end of the attempts that may have run there, are
 * durable, and only then receives the new epoch. Nothing is allocated on it before its first heartbeat, which
 * shows that it has stored this epoch; until then it could connect with the old one again.
 *
 * HELLO also reports which orders the node has received for each running attempt. If some are later than
 * those in the job's record, their numbers are continued, with a gap for the job's other nodes; otherwise the
 * node would take the next orders for late copies. The node is then sent the state in the record, or the
 * orders that lead to it.
 */
#include <errno.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/link.h"
#include "controller/core/marks.h"
#include "controller/core/node_jobs.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/state.h"
#include "store/store.h"

#define ORDERS_GAP 1000U
#define ORDERS_MAX (UINT32_C(1) << 30) // no job has had this many; higher numbers from a node are ignored

static bool is_ahead(const struct core *core, const struct message_hello *hello)
{
    const struct known_attempt *attempts = hello->attempts.items;
    if (hello->epoch > core->epoch)
        return true;
    for (size_t i = 0; i < hello->attempts.count; i++)
        if (attempts[i].id.job > core->last_job)
            return true;
    return hello->began_ms != 0 && hello->began_ms != core->began_ms &&
           (hello->epoch == core->epoch || hello->event > core->first_event);
}

static uint64_t excess(uint64_t number, uint64_t limit)
{
    return number > limit ? number - limit : 0;
}

static uint64_t highest_job(const struct message_hello *hello)
{
    const struct known_attempt *attempts = hello->attempts.items;
    uint64_t highest = 0;
    for (size_t i = 0; i < hello->attempts.count; i++)
        highest = attempts[i].id.job > highest ? attempts[i].id.job : highest;
    return highest;
}

/* The epoch increases by one with each start, and by at least RESTORE_GAP with a restore. */
static bool is_from_before(const struct core *core, const struct core_node *node)
{
    return node->hello.epoch != 0 && node->hello.epoch + RESTORE_GAP / 2 < core->epoch;
}

/* An existing mark keeps its kind and its reason. */
static void hold_node(struct core *core, struct core_node *node)
{
    if (node->held_in != 0 || (!core->is_store_old && !is_from_before(core, node)))
        return;
    node->held_in = core_batch(core)->id;
    const struct cluster_change plain = {
        .kind = CHANGE_NODE_DRAIN,
        .uid = core->options.admin_uid,
        .node = node->name,
        .text = (char[]){ "the store was restored: check the queue, then resume the node" },
    };
    struct cluster_change held;
    record_copy(&cluster_change_record, &held, node->mark != NULL ? node->mark : &plain);
    held.is_held = true;
    held.until_ms = 0;
    core_make_mark(core, &held);
    cluster_change_clear(&held);
}

/*
 * Attempts that were starting there when the copy was made, and are unknown to the node, may have run and
 * ended since. They are not launched again, even if the node is resumed before it is accepted.
 */
static void give_up_starts(struct core *core, struct core_node *node)
{
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node->name, &count);
    for (size_t i = 0; i < count; i++) {
        const struct job *job = entries[i]->job;
        int rank = job_rank_on(job, node->name);
        if (job->state != JOB_STARTING || rank < 0 || core_find_known(node, job, (uint32_t)rank) != NULL ||
            core_extra(entries[i])->is_allocated_here)
            continue;
        core_hook_lost(core, entries[i], (uint32_t)rank, END_UNKNOWN, NO_RECORD);
        node->held_in = core_batch(core)->id;
    }
}

/* The nodes accept the new epoch when they connect again. */
static void call_back_others(struct core *core, const struct core_node *node)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        if (core->nodes[i].is_up && &core->nodes[i] != node) {
            core->effects.close_link(core->effects.arg, core->nodes[i].link);
            core_drop_link(core, &core->nodes[i]);
        }
}

static void check_store(struct core *core, const struct core_node *node)
{
    const struct message_hello *hello = &node->hello;
    bool is_beyond = hello->epoch > core->epoch || highest_job(hello) > core->last_job;
    if (!is_ahead(core, hello) || (core->is_store_old && !is_beyond))
        return;
    uint64_t gap = RESTORE_GAP + excess(hello->epoch, core->epoch) + excess(hello->event, core->last_event) +
                   excess(highest_job(hello), core->last_job);
    store_batch_skip(core_batch(core)->changes, gap);
    core->epoch += gap;
    core->last_job += gap;
    core->last_event += gap;
    core->last_order = core->epoch << 32;
    core->is_store_old = true;
    for (size_t i = 0; i < core->n_nodes; i++)
        hold_node(core, &core->nodes[i]);
    call_back_others(core, node);
}

bool core_is_store_old(const struct core *core)
{
    return core->is_store_old;
}

static int on_hello(struct core *core, struct core_node *node, struct error *err)
{
    check_store(core, node);
    hold_node(core, node);
    node->is_behind_gap = is_from_before(core, node);
    if (node->is_behind_gap)
        give_up_starts(core, node);
    if (node->held_in <= core->durable_batch)
        return 0;
    (void)error_set(err, -EAGAIN, "node %s is drained first, as the store was restored", node->name);
    return error_hint(err, "it is accepted when it connects again");
}

static void on_heartbeat(struct core *core, struct core_node *node, const void *message)
{
    if (!node->is_behind_gap)
        return;
    node->is_behind_gap = false;
    core_node_changed(core, node);
}

static uint32_t highest_order(const struct job *job, const struct known_attempt *known)
{
    uint32_t number = job_park(job)->number;
    return known->park_number > number ? known->park_number : number;
}

/* The numbers may have been continued already for another rank. */
static bool is_off(const struct job *job, const struct known_attempt *known)
{
    bool is_parked = job_is_parked(job) && !job_park_is_unconfirmed(job);
    return known->park_number > job_park(job)->number ||
           (known->park_number != 0 && is_parked && known->park_seen != PARK_SEEN_PARKED);
}

static void reconcile(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    const struct job *job = entry->job;
    int rank = job_rank_on(job, node->name);
    const struct known_attempt *known = rank < 0 ? NULL : core_find_known(node, job, (uint32_t)rank);
    if (job->state != JOB_RUNNING || known == NULL)
        return;
    bool has_terms = known->terms > job_run(job)->terms && known->terms < ORDERS_MAX;
    bool has_parks = highest_order(job, known) < ORDERS_MAX && job->grants.count > 0 && is_off(job, known);
    if (!has_terms && !has_parks)
        return;
    struct job_event event = {
        .type = EVENT_RECONCILED,
        .attempt = job->attempt,
        .terms = has_terms ? known->terms + ORDERS_GAP : 0,
        .park_number = has_parks ? highest_order(job, known) + ORDERS_GAP : 0,
        .park_seen = known->park_seen,
        .text = xasprintf("node %s had later orders than the store", node->name),
    };
    core_change(core, entry, &event, NULL);
    free(event.text);
}

/* A job that has only now been found to run: it was starting when this copy of the store was made. Later
 * concerns receive that event before the start itself, and none of them depends on the order. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    if (news->event->type == EVENT_ALLOCATED)
        core_make_extra(entry)->is_allocated_here = true;
    if (news->event->type != EVENT_STARTED)
        return;
    for (size_t rank = 0; rank < job_node_count(entry->job); rank++) {
        const struct core_node *node = core_find_node(core, job_node_name(entry->job, rank));
        if (node != NULL && node->is_up)
            reconcile(core, entry, node);
    }
}

static void begin(struct core *core)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        hold_node(core, &core->nodes[i]);
}

static const struct core_message messages[] = { { MESSAGE_HEARTBEAT, on_heartbeat }, { 0 } };

const struct core_concern core_concern_restored = {
    .name = "restored",
    .begin = begin,
    .events = CORE_ON(EVENT_ALLOCATED) | CORE_ON(EVENT_STARTED),
    .event = on_event,
    .reconcile = reconcile,
    .hello = on_hello,
    .messages = messages,
};
