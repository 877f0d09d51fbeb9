/* SPDX-License-Identifier: MIT */
/* Every rule is implemented again in its simplest form, sums over arrays, so that an error in the scheduler's
 * index or plan cannot be hidden by the same error here. */
#include "lab/sim/check_ledger.h"

#include <errno.h>

#include "base/memory.h"

void ledger_init(struct ledger *ledger, const struct sim_case *of)
{
    *ledger = (struct ledger){ .of = of, .nodes = xcalloc(of->n_nodes, sizeof(struct ledger_node)) };
}

void ledger_clear(struct ledger *ledger)
{
    free(ledger->nodes);
    *ledger = (struct ledger){ 0 };
}

static bool is_shared(const int64_t *job)
{
    return job[JOB_SHARE] > 0 || job[JOB_GPU_MEM] > 0;
}

static void enter(
    struct ledger *ledger, const int64_t *job, const struct allocation *allocation, int64_t sign)
{
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        struct ledger_node *node = &ledger->nodes[allocation->gpus[i].node];
        uint32_t gpu = allocation->gpus[i].gpu;
        node->whole[gpu] += is_shared(job) ? 0 : sign;
        node->share[gpu] += sign * job[JOB_SHARE];
        node->memory[gpu] += sign * job[JOB_GPU_MEM];
        node->users[gpu] += sign;
    }
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        struct ledger_node *node = &ledger->nodes[allocation->nodes[i].node];
        node->cpu += sign * job[JOB_CPU];
        node->host_memory += sign * job[JOB_MEMORY];
        node->jobs += sign;
    }
}

static int check_host(const struct ledger *ledger, uint32_t at, struct error *err)
{
    const struct ledger_node *node = &ledger->nodes[at];
    const int64_t *has = ledger->of->nodes[at];
    if (node->is_down || node->is_drained)
        return error_set(err, -EPROTO, "on node %u, which is %s", at, node->is_down ? "down" : "drained");
    if (node->cpu > has[NODE_CPU])
        return error_set(err, -EPROTO, "node %u has %lld of its %lld thousandths of CPUs allocated", at,
            (long long)node->cpu, (long long)has[NODE_CPU]);
    if (has[NODE_MEMORY] > 0 && node->host_memory > has[NODE_MEMORY])
        return error_set(err, -EPROTO, "node %u has more host memory allocated than it has", at);
    int64_t jobs_max = ledger->of->settings[SET_NODE_JOBS];
    if (jobs_max > 0 && node->jobs > jobs_max)
        return error_set(err, -EPROTO, "node %u runs %lld jobs; the limit is %lld", at, (long long)node->jobs,
            (long long)jobs_max);
    return 0;
}

static int check_gpu(
    const struct ledger *ledger, const int64_t *job, uint32_t at, uint32_t gpu, struct error *err)
{
    const struct ledger_node *node = &ledger->nodes[at];
    int64_t pick = at * 256 + gpu + 1;
    if (gpu >= ledger->of->nodes[at][NODE_GPUS])
        return error_set(err, -EPROTO, "node %u has no GPU %u", at, gpu);
    if (node->is_paused[gpu])
        return error_set(err, -EPROTO, "GPU %u of node %u is paused", gpu, at);
    if (node->whole[gpu] > 1 || (node->whole[gpu] == 1 && node->users[gpu] > 1))
        return error_set(err, -EPROTO, "GPU %u of node %u is allocated twice", gpu, at);
    if (node->share[gpu] > SHARE_WHOLE || node->memory[gpu] > LEDGER_GPU_MEM)
        return error_set(err, -EPROTO, "GPU %u of node %u has %lld thousandths and %lld MiB allocated", gpu,
            at, (long long)node->share[gpu], (long long)(node->memory[gpu] >> 20));
    if (job[JOB_ALLOW] != 0 && (job[JOB_ALLOW] >> gpu & 1) == 0)
        return error_set(err, -EPROTO, "GPU %u is not in the job's allowed set", gpu);
    if (job[JOB_PICK] != 0 && job[JOB_PICK] != pick)
        return error_set(err, -EPROTO, "GPU %u of node %u is not the one requested", gpu, at);
    return 0;
}

static int check_reserved(const struct ledger *ledger, const int64_t *job, uint32_t node, uint32_t gpu,
    int64_t now_ms, struct error *err)
{
    int64_t end_ms = job[JOB_LIMIT] > 0 ? now_ms + job[JOB_LIMIT] : INT64_MAX;
    for (size_t i = 0; i < ledger->n_reserved; i++) {
        const struct ledger_reserved *reserved = &ledger->reserved[i];
        if (reserved->until_ms <= now_ms || reserved->from_ms >= end_ms || reserved->uid == job[JOB_UID])
            continue;
        if (job[JOB_PREEMPTIBLE] != 0 && now_ms < reserved->from_ms)
            continue;
        for (size_t k = 0; k < reserved->n_gpus; k++)
            if (reserved->nodes[k] == node && reserved->gpus[k] == gpu)
                return error_set(err, -EPROTO,
                    "GPU %u of node %u is reserved for user %u from %lld to %lld ms", gpu, node,
                    reserved->uid, (long long)reserved->from_ms, (long long)reserved->until_ms);
    }
    return 0;
}

static int check_shape(const int64_t *job, const struct allocation *allocation, struct error *err)
{
    if ((int64_t)allocation->n_gpus != job[JOB_GPUS])
        return error_set(
            err, -EPROTO, "got %zu GPUs instead of %lld", allocation->n_gpus, (long long)job[JOB_GPUS]);
    if (job[JOB_NODES] > 0 && (int64_t)allocation->n_nodes != job[JOB_NODES])
        return error_set(
            err, -EPROTO, "got %zu nodes instead of %lld", allocation->n_nodes, (long long)job[JOB_NODES]);
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        int64_t here = 0;
        for (size_t k = 0; k < allocation->n_gpus; k++)
            here += allocation->gpus[k].node == allocation->nodes[i].node;
        if (job[JOB_PER_NODE] > 0 && here != job[JOB_PER_NODE])
            return error_set(err, -EPROTO, "got %lld GPUs on node %u instead of %lld", (long long)here,
                allocation->nodes[i].node, (long long)job[JOB_PER_NODE]);
        if (allocation->nodes[i].cpu_milli != job[JOB_CPU] ||
            (int64_t)allocation->nodes[i].memory != job[JOB_MEMORY])
            return error_set(err, -EPROTO, "got other CPUs or memory than requested on node %u",
                allocation->nodes[i].node);
    }
    return 0;
}

int ledger_give(struct ledger *ledger, const int64_t *job, const struct allocation *allocation,
    int64_t now_ms, struct error *err)
{
    for (size_t i = 0; i < allocation->n_gpus; i++)
        if (allocation->gpus[i].node >= ledger->of->n_nodes || allocation->gpus[i].gpu >= LEDGER_GPUS)
            return error_set(err, -EPROTO, "got a GPU that does not exist");
    int result = check_shape(job, allocation, err);
    if (result < 0)
        return result;
    enter(ledger, job, allocation, 1);
    for (size_t i = 0; result == 0 && i < allocation->n_nodes; i++)
        result = check_host(ledger, allocation->nodes[i].node, err);
    for (size_t i = 0; result == 0 && i < allocation->n_gpus; i++) {
        uint32_t node = allocation->gpus[i].node, gpu = allocation->gpus[i].gpu;
        result = check_gpu(ledger, job, node, gpu, err);
        if (result == 0)
            result = check_reserved(ledger, job, node, gpu, now_ms, err);
    }
    return result;
}

void ledger_take_back(struct ledger *ledger, const int64_t *job, const struct allocation *allocation)
{
    enter(ledger, job, allocation, -1);
}
