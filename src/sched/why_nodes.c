/* SPDX-License-Identifier: MIT */
/* What is special about nodes that could run a job: starts fail there, or jobs outside the ledger keep their
 * resources. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/parse.h"
#include "sched/sched_private.h"
#include "sched/why.h"

#define NODES_SHOWN 4U

/* --- starts that fail --- */

static bool could_use(
    const struct sched *sched, const struct cluster_node *node, const struct sched_request *request)
{
    return cluster_host_suffices(node, request) &&
           (request->gpus == 0 || cluster_count_suitable(&sched->cluster, node, request, 1) > 0);
}

bool why_explain_bars(
    const struct sched *sched, const struct queue_class *class, bool is_brief, struct why *why)
{
    _cleanup_buffer_ struct buffer names = { 0 };
    const struct cluster_bar *first = NULL;
    size_t n_barred = 0, n_others = 0;
    struct sched_request request = class->key.request; // borrowed
    request.heeds_bars = false;
    for (size_t i = 0; i < sched->cluster.n_nodes; i++) {
        const struct cluster_node *node = &sched->cluster.nodes[i];
        const struct cluster_bar *bar = cluster_find_bar(node, class->key.uid);
        if ((bar == NULL && n_others > 0) || !could_use(sched, node, &request))
            continue;
        n_others += bar == NULL;
        if (bar == NULL)
            continue;
        if (n_barred++ < NODES_SHOWN)
            buffer_printf(&names, "%s%s", n_barred > 1 ? ", " : "", node->name);
        if (first == NULL || bar->until_ms < first->until_ms)
            first = bar;
    }
    bool is_shown = first != NULL && (!is_brief || n_others == 0);
    struct why_reason *reason = is_shown ? why_add(why, WHY_BACKOFF, first->until_ms) : NULL;
    if (n_barred > NODES_SHOWN)
        buffer_append_text(&names, " and others");
    if (reason != NULL)
        (void)snprintf(reason->text, sizeof(reason->text), "starts fail on %.80s: %.200s",
            buffer_text(&names), first->why);
    return first != NULL && n_others == 0;
}

/* --- kept resources: jobs that started before their GPUs were free keep those of a node, booked outside the
 * ledger, until they end (cluster_keep()). The scheduler does not count them as running jobs, so no other
 * reason mentions these resources. --- */

/* Does the node have CPUs and memory for it, with or without the kept ones? */
static bool has_room(const struct cluster_node *node, const struct sched_request *request, bool with_kept)
{
    uint64_t cpu = node->cpu_booked - (with_kept ? node->cpu_kept : 0);
    uint64_t memory = node->memory_booked - (with_kept ? node->memory_kept : 0);
    return (request->cpu_milli == 0 || cpu + request->cpu_milli <= node->cpu_milli) &&
           (request->memory == 0 || node->memory == 0 || memory + request->memory <= node->memory);
}

void why_add_kept(const struct sched *sched, const struct sched_request *request, struct why_reason *reason)
{
    const struct cluster_node *keeping = NULL;
    char memory[32];
    for (size_t i = 0; i < sched->cluster.n_nodes; i++) {
        const struct cluster_node *node = &sched->cluster.nodes[i];
        if (!node->is_up || node->is_drained || !cluster_node_admits(node, request))
            continue;
        if (has_room(node, request, false))
            return; // it is something else
        if (keeping == NULL && has_room(node, request, true))
            keeping = node;
    }
    if (keeping == NULL)
        return;
    reason->until_ms = TIME_NEVER; // they still wait for their GPUs, or use them
    format_size(keeping->memory_kept, memory, sizeof(memory));
    size_t length = strlen(reason->text);
    (void)snprintf(reason->text + length, sizeof(reason->text) - length,
        "; jobs that started before their GPUs were free keep %g CPU%s and %s on %.60s until they end",
        keeping->cpu_kept / 1000.0, keeping->cpu_kept == 1000 ? "" : "s", memory, keeping->name);
}
