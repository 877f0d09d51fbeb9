/* SPDX-License-Identifier: MIT */
/*
 * Nodes on which the jobs of a user, or all jobs, do not start for a while. A bar only excludes nodes, so
 * setting one does not require a pass over the queue. When it ends, the needs of the classes concerned may
 * have been computed without the node: they are ranked and tried again.
 */
#include "sched/sched_private.h"

static void arm(struct sched *sched)
{
    int64_t at = TIME_NEVER;
    for (size_t i = 0; i < sched->cluster.n_nodes; i++)
        for (size_t k = 0; k < sched->cluster.nodes[i].n_bars; k++)
            if (sched->cluster.nodes[i].bars[k].until_ms < at)
                at = sched->cluster.nodes[i].bars[k].until_ms;
    timers_set(&sched->timers, at, TIMER_BAR, sched, &sched->bar_timer);
}

static void try_again(struct sched *sched, uint32_t uid)
{
    for (const struct account *account = sched->fairshare.first; account != NULL; account = account->next) {
        if (account->kind != ACCOUNT_USER || (uid != CLUSTER_ALL_USERS && account->id != uid))
            continue;
        for (struct queue_class *class = account->classes; class != NULL; class = class->peer_after) {
            class->is_fresh = true;
            if (class->length > 0 && !class->is_parked)
                sched_rank_head(sched, class);
            queue_refresh(&sched->queue, class);
        }
    }
    sched->is_dirty = true;
}

void sched_bar(
    struct sched *sched, int64_t now_ms, const char *node, uint32_t uid, int64_t until_ms, const char *why)
{
    struct cluster_node *where = cluster_find(&sched->cluster, node);
    if (now_ms > sched->now_ms)
        sched->now_ms = now_ms;
    if (where == NULL)
        return;
    cluster_bar(&sched->cluster, where, uid, until_ms, why);
    arm(sched);
}

void sched_unbar(struct sched *sched, int64_t now_ms, const char *node, uint32_t uid)
{
    struct cluster_node *where = cluster_find(&sched->cluster, node);
    if (now_ms > sched->now_ms)
        sched->now_ms = now_ms;
    if (where == NULL || !cluster_unbar(&sched->cluster, where, uid))
        return;
    try_again(sched, uid);
    arm(sched);
}

void sched_bar_timer(struct sched *sched)
{
    for (size_t i = 0; i < sched->cluster.n_nodes; i++) {
        struct cluster_node *node = &sched->cluster.nodes[i];
        for (size_t k = node->n_bars; k-- > 0;) {
            uint32_t uid = node->bars[k].uid;
            if (node->bars[k].until_ms > sched->now_ms)
                continue;
            (void)cluster_unbar(&sched->cluster, node, uid);
            try_again(sched, uid);
        }
    }
    arm(sched);
}

void sched_bars_copy(struct sched *to, const struct sched *from)
{
    for (size_t i = 0; i < from->cluster.n_nodes; i++) {
        const struct cluster_node *node = &from->cluster.nodes[i];
        struct cluster_node *copy = node->n_bars > 0 ? cluster_find(&to->cluster, node->name) : NULL;
        for (size_t k = 0; copy != NULL && k < node->n_bars; k++)
            cluster_bar(&to->cluster, copy, node->bars[k].uid, node->bars[k].until_ms, node->bars[k].why);
    }
    arm(to);
}
