/* SPDX-License-Identifier: MIT */
/*
 * The order that users give to their own jobs. An own priority changes nothing for other users: instead of
 * moving a job forward it keeps its owner's jobs of lower own priority behind it. Each class has the position
 * given by the policy, or directly behind the last of its owner's classes of higher own priority, whichever
 * is later; no job precedes one of another user that it would not have preceded otherwise.
 *
 * Classes that are not in the tree, or that were requeued to the end (sched_rank.c), keep no class behind
 * them, and preemptible ones only each other. Changes take effect before a pass; within one, a class stays
 * behind those that preceded it at its beginning.
 */
#include <math.h>

#include "job/ask.h"
#include "sched/sched_private.h"

void sched_own_changed(struct sched *sched, struct queue_class *class)
{
    if (class->account->n_own == 0)
        return;
    class->account->is_own_stale = true;
    sched->is_own_stale = true;
    sched->is_dirty = true;
}

double sched_own_rank(const struct queue_class *class)
{
    return class->policy_rank > class->behind ? class->policy_rank : nextafter(class->behind, INFINITY);
}

/* Jobs that an owner's order compares: all preemptible or all not, in partitions of one priority. */
struct peers {
    bool is_preemptible;
    int32_t tier;
};

static bool is_ordered(const struct queue_class *class, struct peers peers)
{
    return class->size > 0 && class->key.is_preemptible == peers.is_preemptible &&
           class->tier == peers.tier && class->key.priority <= 0 && class->policy_rank < RANK_TURN_OVER;
}

/* The last ranks of the account's classes, by own priority; -INFINITY: there are none. */
static void find_last(const struct account *account, struct peers peers, double *last)
{
    for (size_t i = 0; i <= ASK_PRIORITY_MAX; i++)
        last[i] = -INFINITY;
    for (const struct queue_class *class = account->classes; class != NULL; class = class->peer_after)
        if (is_ordered(class, peers) && class->policy_rank > last[class->key.own_priority])
            last[class->key.own_priority] = class->policy_rank;
}

/* Converts the last ranks of each own priority to the rank that its jobs must follow. */
static void hold_behind(double *last)
{
    double behind = -INFINITY;
    for (size_t i = ASK_PRIORITY_MAX + 1; i-- > 0;) {
        double own = last[i];
        last[i] = behind;
        if (own > behind)
            behind = own;
        else if (own > -INFINITY)
            behind = nextafter(behind, INFINITY);
    }
}

static void order_peers(struct sched *sched, const struct account *account, struct peers peers)
{
    double behind[ASK_PRIORITY_MAX + 1];
    find_last(account, peers, behind);
    hold_behind(behind);
    for (struct queue_class *class = account->classes; class != NULL; class = class->peer_after) {
        if (!is_ordered(class, peers))
            continue;
        class->behind = behind[class->key.own_priority];
        double rank = sched_own_rank(class);
        if (rank != class->rank)
            sched_move_class(sched, class, rank, false);
    }
}

static void order_tier(struct sched *sched, const struct account *account, int32_t tier)
{
    order_peers(sched, account, (struct peers){ false, tier });
    order_peers(sched, account, (struct peers){ true, tier });
}

void sched_own_settle(struct sched *sched)
{
    if (!sched->is_own_stale)
        return;
    sched->is_own_stale = false;
    for (struct account *account = sched->fairshare.first; account != NULL; account = account->next) {
        if (!account->is_own_stale)
            continue;
        account->is_own_stale = false;
        order_tier(sched, account, 0);
        for (size_t i = 0; i < sched->cluster.n_partitions; i++)
            if (sched->cluster.partitions[i].priority != 0)
                order_tier(sched, account, sched->cluster.partitions[i].priority);
    }
}
