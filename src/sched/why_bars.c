/* SPDX-License-Identifier: MIT */
/* Nodes that could run a job, and on which starts fail. */
#include <stdio.h>

#include "base/buffer.h"
#include "sched/sched_private.h"

#define NODES_SHOWN 4U

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
