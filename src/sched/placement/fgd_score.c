/* SPDX-License-Identifier: MIT */
/*
 * Scores a part of a request on one node: compares the node after the placement with the node before, by the
 * rule. Ignores holds and reservations.
 */
#include <math.h>

#include "sched/placement/fgd.h"

static bool suits(const struct cluster *cluster, const struct cluster_node *node, const struct fgd_node *view,
    uint32_t i, const struct sched_request *request)
{
    return cluster_all_suit(cluster, request) ||
           cluster_gpu_suits(cluster, &node->gpus[view->gpu[i]], request);
}

static uint32_t asked_share(const struct cluster_node *node, const struct fgd_node *view, uint32_t i,
    const struct sched_request *request)
{
    if (!request_is_shared(request))
        return SHARE_WHOLE;
    uint32_t by_memory =
        request->gpu_mem == 0 ? 0 : fgd_memory_share(request->gpu_mem, node->gpus[view->gpu[i]].memory_bytes);
    return request->share > by_memory ? request->share : by_memory;
}

/* Several GPUs: the tightest that fit; any for whole ones. False: too few. */
static bool take_several(const struct cluster *cluster, const struct cluster_node *node,
    struct fgd_node *view, const struct sched_request *request)
{
    uint64_t taken[NODE_GPUS_LIMIT / 64] = { 0 };
    for (uint32_t n = 0; n < request->gpus; n++) {
        uint32_t best = view->n;
        for (uint32_t i = 0; i < view->n; i++) {
            bool is_taken = (taken[i / 64] >> (i % 64) & 1) != 0;
            if (is_taken || (best < view->n && view->free[i] >= view->free[best]))
                continue;
            if (view->free[i] >= asked_share(node, view, i, request) &&
                suits(cluster, node, view, i, request))
                best = i;
        }
        if (best == view->n)
            return false;
        view->free[best] = (uint16_t)(view->free[best] - asked_share(node, view, best, request));
        taken[best / 64] |= 1ULL << (best % 64);
    }
    return true;
}

static bool is_as_large(const struct cluster_node *node, const struct fgd_node *view, uint32_t i, uint32_t k)
{
    return node->gpus[view->gpu[i]].memory_bytes == node->gpus[view->gpu[k]].memory_bytes;
}

/* One share: tries every GPU, except those like an earlier one. */
static float score_share(const struct fgd_rule *rule, const struct fgd_typicals *typicals,
    const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *view, double before,
    const struct sched_request *request, int32_t *ret_gpu)
{
    float best = -INFINITY;
    uint32_t tightest = UINT32_MAX;
    for (uint32_t i = 0; i < view->n; i++) {
        uint32_t share = asked_share(node, view, i, request);
        uint16_t kept = view->free[i];
        bool is_known = false;
        for (uint32_t k = 0; k < i && request->model == NULL && request->n_allow == 0; k++)
            is_known = is_known ||
                       (view->free[k] == kept && (request->gpu_mem == 0 || is_as_large(node, view, i, k)));
        if (is_known || kept < share || !suits(cluster, node, view, i, request))
            continue;
        if (rule->takes_tightest && kept >= tightest)
            continue;
        view->free[i] = (uint16_t)(kept - share);
        float score = rule->score(before, rule->value(view, typicals));
        view->free[i] = kept;
        if (score > best || rule->takes_tightest) {
            best = score;
            tightest = kept;
            *ret_gpu = view->gpu[i];
        }
    }
    return best;
}

float fgd_score(const struct fgd_rule *rule, const struct fgd_typicals *typicals,
    const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *view,
    const struct sched_request *request, int32_t *ret_gpu)
{
    *ret_gpu = -1;
    if (view->cpu_milli < request->cpu_milli || view->memory < request->memory)
        return -INFINITY;
    if (request->gpus == 0 && view->n == 0)
        return SCORE_NO_GPUS;
    double before = rule->value(view, typicals);
    view->cpu_milli -= request->cpu_milli;
    view->memory -= view->memory == UINT64_MAX ? 0 : request->memory;
    if (request->gpus == 1 && request_is_shared(request))
        return score_share(rule, typicals, cluster, node, view, before, request, ret_gpu);
    if (!take_several(cluster, node, view, request))
        return -INFINITY;
    return rule->score(before, rule->value(view, typicals));
}
