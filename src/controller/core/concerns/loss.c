/* SPDX-License-Identifier: MIT */
/*
 * Unreachable nodes. Silence proves nothing: the jobs of such a node keep their state, and their GPUs stay
 * booked. The node is only marked unreachable, and its link, which may appear alive, is closed, so that the
 * node sends HELLO when it can, which reconciles everything.
 *
 * Three things prove that an attempt has ended without a report: the node was rebooted (its next HELLO shows
 * it), an administrator confirmed that it is off (core_fence), or the attempt's lease has expired: its
 * shepherd ends it when the node has had no contact with the controller for that long, whatever happens to
 * the agent. The node counts from when it sent the last message that the controller received, the controller
 * from when it received it, plus a margin.
 *
 * All of it uses the boot clock. If the controller itself was stopped or suspended, the silence was its own:
 * every node gets the whole time again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/link.h"
#include "controller/core/marks.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"

#define BEATS_PER_TIMEOUT 6U
#define BEATS_PER_LEASE   6U // a lease with fewer heartbeats would end on a healthy node
#define HEARTBEAT_MAX_MS  5000
#define LEASE_MARGIN_MS   30000 // time to end what runs there; for a short lease, the duration of the lease
#define LEASE_DRIFT       100   // fraction by which two clocks may differ (1/100)
#define FENCE_LOOK_MS     1000  // delay after a start for nodes that had been fenced

struct core_loss {
    int64_t check_ms; // boot clock: next check for silent nodes; 0: none
};

static int64_t silent_at_ms(const struct core *core, const struct core_node *node)
{
    return node->last_contact_ms + core->options.loss.timeout_ms;
}

static void check_by(struct core *core, int64_t boot_ms)
{
    if (core->loss->check_ms == 0 || boot_ms < core->loss->check_ms)
        core->loss->check_ms = boot_ms;
}

static void watch_for_silence(struct core *core, struct core_node *node)
{
    if (core->options.loss.timeout_ms > 0)
        check_by(core, silent_at_ms(core, node));
}

static void set_heartbeat(const struct core *core, struct message_welcome *welcome)
{
    int64_t beat_ms = core->options.loss.timeout_ms / BEATS_PER_TIMEOUT;
    int64_t lease_beat_ms = core->options.loss.lease_ms / BEATS_PER_LEASE;
    beat_ms = beat_ms < HEARTBEAT_MAX_MS ? beat_ms : HEARTBEAT_MAX_MS;
    beat_ms = lease_beat_ms == 0 || beat_ms < lease_beat_ms ? beat_ms : lease_beat_ms;
    welcome->timeout_ms = core->options.loss.timeout_ms;
    welcome->heartbeat_ms = beat_ms > HEARTBEAT_MIN_MS ? beat_ms : HEARTBEAT_MIN_MS;
}

static bool is_fenced(const struct core_node *node)
{
    return node->mark != NULL && node->mark->kind == CHANGE_NODE_FENCE;
}

static void await_nodes(struct core *core)
{
    for (struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after)
        for (size_t rank = 0; rank < job_node_count(entry->job); rank++)
            core_add_node(core, job_node_name(entry->job, rank))->is_awaited = true;
    const struct cluster *known = sched_known(core->sched); // nodes may also be missed, drained and fenced
    for (size_t i = 0; i < known->n_nodes; i++)
        (void)core_add_node(core, known->nodes[i].name);
    for (size_t i = 0; i < core->n_nodes; i++) {
        core_touch_node(core, &core->nodes[i]); // nodes with marks are older than the clock
        core_ack_node(core, &core->nodes[i]);
        if (is_fenced(&core->nodes[i]) && core->options.loss.timeout_ms == 0)
            check_by(core, core->boot_ms + FENCE_LOOK_MS); // otherwise it is checked when it has been silent
    }
}

/* The time after which no process of this attempt can be running there, if the node stays away. */
static int64_t lease_over_ms(const struct core_node *node, const struct job *job)
{
    int64_t lease_ms = job_run(job)->node_lease_ms;
    int64_t margin_ms = lease_ms < LEASE_MARGIN_MS ? lease_ms : LEASE_MARGIN_MS;
    return node->acked_ms + lease_ms + lease_ms / LEASE_DRIFT + margin_ms;
}

/* Ends the attempt's part there and, for a job on several nodes, possibly the whole attempt. */
static void end_there(
    struct core *core, struct core_entry *entry, const struct core_node *node, const char *text)
{
    core_hook_lost(core, entry, (uint32_t)job_rank_on(entry->job, node->name), END_NODE_LOST, text);
}

static void end_lease(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    char lease[32];
    format_duration(job_run(entry->job)->node_lease_ms, lease, sizeof(lease));
    _cleanup_free_ char *text =
        xasprintf("its node %s was unreachable for longer than its lease of %s", node->name, lease);
    end_there(core, entry, node, text);
}

static void check_leases(struct core *core, const struct core_node *node)
{
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node->name, &count);
    for (size_t i = 0; i < count; i++) {
        const struct job *job = entries[i]->job;
        if (!job_state_is_active(job->state) || job_run(job)->node_lease_ms == 0)
            continue;
        if (lease_over_ms(node, job) <= core->boot_ms)
            end_lease(core, entries[i], node);
        else
            check_by(core, lease_over_ms(node, job));
    }
}

static int64_t next_ms(const struct core *core)
{
    return core->loss->check_ms != 0 ? core->loss->check_ms : TIME_NEVER;
}

static void lose(struct core *core, struct core_node *node)
{
    struct cluster_change change = {
        .kind = CHANGE_NODE_UNREACHABLE, .node = node->name, .from_ms = node->last_contact_wall_ms
    };
    if (node->is_up) {
        core->effects.close_link(core->effects.arg, node->link);
        core_drop_link(core, node);
    }
    node->is_unreachable = true;
    core_change_cluster(core, &change);
}

static void end_all(struct core *core, const struct core_node *node, const char *reason)
{
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node->name, &count);
    _cleanup_free_ char *text = reason != NULL ? xasprintf("node %s was fenced: %.800s", node->name, reason)
                                               : xasprintf("node %s was fenced", node->name);
    for (size_t i = 0; i < count; i++)
        if (job_state_is_active(entries[i]->job->state))
            end_there(core, entries[i], node, text);
}

/* Results of single ranks are not stored: after a restart, ranks on a fenced node are lost again. */
static void check_fence(struct core *core, const struct core_node *node)
{
    if (is_fenced(node))
        end_all(core, node, node->mark->text);
}

static void check_node(struct core *core, struct core_node *node)
{
    bool is_watched = !node->is_unreachable && core->options.loss.timeout_ms > 0;
    if (is_watched && silent_at_ms(core, node) <= core->boot_ms)
        lose(core, node);
    else if (is_watched)
        check_by(core, silent_at_ms(core, node));
    if (node->is_up)
        return;
    check_leases(core, node);
    check_fence(core, node);
}

static void run(struct core *core)
{
    int64_t late_ms = core->boot_ms - core->loss->check_ms;
    if (core->loss->check_ms == 0 || late_ms < 0)
        return;
    bool were_we_away = late_ms > core->options.loss.timeout_ms / 4;
    core->loss->check_ms = 0;
    for (size_t i = 0; i < core->n_nodes; i++) {
        struct core_node *node = &core->nodes[i];
        if (were_we_away && !node->is_unreachable)
            node->last_contact_ms = core->boot_ms;
        check_node(core, node);
    }
}

bool core_has_attempts_on(const struct core *core, const char *node)
{
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node, &count);
    for (size_t i = 0; i < count; i++)
        if (!core_is_rank_lost(core, entries[i], (uint32_t)job_rank_on(entries[i]->job, node)))
            return true;
    return false;
}

void core_fence(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *name, const char *reason, void *request)
{
    struct core_answer answer = { 0 };
    core_begin(core, boot_ms, wall_ms);
    const struct core_node *node = core_find_node(core, name);
    answer.code = core_check_admin(core, who, "fence nodes", 0, &answer.err);
    if (answer.code == 0 && node == NULL) {
        answer.code = error_set(&answer.err, -ENOENT, "there is no node %.100s", name);
    } else if (answer.code == 0 && node->is_up) {
        (void)error_set(
            &answer.err, -EISCONN, "node %.100s is up: its jobs are running, and mgpu can end them", name);
        answer.code = error_hint(&answer.err, "drain it and cancel its jobs instead");
    }
    if (answer.code == 0) {
        struct cluster_change change = {
            .kind = CHANGE_NODE_FENCE, .uid = who->uid, .node = xstrdup(name), .text = xstrdup(reason)
        };
        core_make_mark(core, &change);
        cluster_change_clear(&change);
        end_all(core, node, reason);
    }
    core_reply(core, request, &answer);
}

static void on_heartbeat(struct core *core, struct core_node *node, const void *message)
{
    const struct message_heartbeat *heartbeat = message;
    const struct message_heartbeat ack = { .sent_ms = heartbeat->sent_ms, .event = core->last_durable_event };
    core_ack_node(core, node);
    core->effects.send(core->effects.arg, node->link, &message_heartbeat_ack_record, &ack);
}

static void init(struct core *core)
{
    core->loss = xcalloc(1, sizeof(*core->loss));
}

static void clear(struct core *core)
{
    free(core->loss);
}

static const struct core_message messages[] = { { MESSAGE_HEARTBEAT, on_heartbeat }, { 0 } };

const struct core_concern core_concern_loss = {
    .name = "loss",
    .init = init,
    .free = clear,
    .begin = await_nodes,
    .messages = messages,
    .contact = watch_for_silence,
    .welcome = set_heartbeat,
    .next_ms = next_ms,
    .run = run,
};
