/* SPDX-License-Identifier: MIT */
/* Jobs that started before their GPUs were free keep their resources of a node, booked outside the ledger,
 * until they end (cluster_keep()). The scheduler does not count them as running jobs, so no other reason
 * mentions these resources. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "sched/sched_private.h"
#include "sched/why.h"

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
