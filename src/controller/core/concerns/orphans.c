/* SPDX-License-Identifier: MIT */
/*
 * Orphaned attempts: a node still has them, but their jobs were requeued or ended without them, because the
 * node was fenced or unreachable for too long. They are stopped without a grace as soon as that is durable,
 * because their jobs may run elsewhere by now. Until each has been reported as ended, the node gets nothing
 * new: the GPUs that are free in the ledger may be in use.
 *
 * On a node that is held because the store is an older copy, orphans may be jobs that the store has lost.
 * They run until they end, or until an administrator resumes the node.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/marks.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

static bool is_wanted(
    const struct core *core, const struct core_node *node, const struct known_attempt *known)
{
    struct core_entry *entry = core_find(core, known->id.job);
    if (entry == NULL || !job_state_is_active(entry->job->state) ||
        !job_is_rank_on(entry->job, known->id.rank, node->name) ||
        core_is_rank_lost(core, entry, known->id.rank))
        return false;
    /* An entry that a crash left without its token can only be the job's present attempt. */
    return entry->job->token == known->token ||
           (known->token == 0 && entry->job->attempt == known->id.attempt);
}

static void stop(struct core *core, const struct core_node *node, const struct known_attempt *known)
{
    struct message_stop message = {
        .id = known->id,
        .token = known->token,
        .signal = SIGTERM,
    };
    core_defer(core, (struct deferred){ .kind = DEFERRED_STOP, .link = node->link, .stop = message });
}

static void stop_all(struct core *core, struct core_node *node)
{
    for (size_t i = 0; node->is_up && i < node->n_orphaned; i++)
        stop(core, node, &node->orphaned[i]);
}

static void clear_node(struct core *core, struct core_node *node)
{
    free(take_ptr(node->orphaned));
    node->n_orphaned = 0;
}

static void on_up(struct core *core, struct core_node *node, bool was_up)
{
    const struct known_attempt *attempts = node->hello.attempts.items;
    clear_node(core, node);
    for (size_t i = 0; i < node->hello.attempts.count; i++) {
        const struct known_attempt *known = &attempts[i];
        if (is_wanted(core, node, known) || known->phase == PHASE_EXITED || known->phase == PHASE_RETURNED)
            continue;
        node->orphaned = xreallocarray(node->orphaned, node->n_orphaned + 1, sizeof(*node->orphaned));
        node->orphaned[node->n_orphaned++] = *known;
    }
    if (!core_is_held(node))
        stop_all(core, node);
    if (!was_up && node->n_orphaned > 0)
        core_change_cluster(core, &(struct cluster_change){ .kind = CHANGE_NODE_BACK, .node = node->name });
}

static void on_over(struct core *core, struct core_node *node, const struct message_release_attempt *over)
{
    for (size_t i = node->n_orphaned; i-- > 0;) {
        const struct known_attempt *known = &node->orphaned[i];
        if (known->id.job != over->id.job || known->id.attempt != over->id.attempt ||
            known->id.step != over->id.step || known->id.rank != over->id.rank)
            continue;
        node->orphaned[i] = node->orphaned[--node->n_orphaned];
        if (node->n_orphaned == 0 && node->is_up)
            core_node_changed(core, node);
    }
}

/* The node was held and no longer is. */
static void on_mark(struct core *core, const struct cluster_change *change)
{
    struct core_node *node = core_find_node(core, change->node);
    if (change->kind == CHANGE_NODE_RESUME && node != NULL)
        stop_all(core, node);
}

static void clear(struct core *core)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        clear_node(core, &core->nodes[i]);
}

const struct core_concern core_concern_orphans = {
    .name = "orphans",
    .free = clear,
    .over = on_over,
    .up = on_up,
    .down = clear_node,
    .mark = on_mark,
};
