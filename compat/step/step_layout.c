/* SPDX-License-Identifier: MIT */
/*
 * Assigns tasks to nodes: in blocks (tasks 0 to 2 of 5 on the first of two nodes), cyclically (0, 2, 4), in
 * planes (of two: 0, 1, 4), or as specified by a list of nodes (arbitrary).
 */
#include "compat/step/step_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "cli/submit/slurm_distribution.h"

static uint32_t in_blocks(const struct step *step, uint32_t task)
{
    uint32_t nodes = (uint32_t)step->nodes.count, each = step->count / nodes, more = step->count % nodes;
    uint32_t larger = more * (each + 1); // tasks on the nodes that have one more
    return task < larger ? task / (each + 1) : more + (task - larger) / each;
}

static uint32_t in_cycles(const struct step *step, uint32_t task)
{
    return task % (uint32_t)step->nodes.count;
}

static uint32_t in_planes(const struct step *step, uint32_t task)
{
    uint32_t size = slurm_distribution_plane(step->job->distribution);
    return task / (size > 0 ? size : 1) % (uint32_t)step->nodes.count;
}

static uint32_t as_listed(const struct step *step, uint32_t task)
{
    uint32_t node = 0;
    while (node < step->nodes.count && task < step->job->task_nodes.count &&
           strcmp(step->nodes.items[node], step->job->task_nodes.items[task]) != 0)
        node++;
    return node;
}

int step_layout(struct step *step, struct error *err)
{
    static uint32_t (*const node_of[])(const struct step *step, uint32_t task) = {
        [SLURM_LAYOUT_BLOCK] = in_blocks,
        [SLURM_LAYOUT_CYCLIC] = in_cycles,
        [SLURM_LAYOUT_PLANE] = in_planes,
        [SLURM_LAYOUT_ARBITRARY] = as_listed,
    };
    enum slurm_layout layout = slurm_distribution_layout(step->job->distribution);
    _cleanup_free_ uint32_t *local = xcalloc(step->nodes.count, sizeof(*local));
    bool is_in_order = true;
    for (uint32_t i = 0; i < step->count; i++) {
        struct step_task *task = &step->tasks[i];
        task->node = node_of[layout](step, i);
        if (task->node >= step->nodes.count)
            return error_set(err, -EINVAL, "Node %.60s of task %" PRIu32 " is not in the step",
                step->job->task_nodes.items[i], i);
        task->local = local[task->node]++;
        is_in_order = is_in_order && (i == 0 || task->node >= step->tasks[i - 1].node);
    }
    bool is_mpi = step->job->mpi != NULL && strcmp(step->job->mpi, "none") != 0;
    if (is_mpi && !is_in_order)
        return error_set(err, -EINVAL,
            "--distribution=%.60s is not supported with --mpi=%.20s: ranks of MPI are distributed in blocks",
            step->job->distribution, step->job->mpi);
    return 0;
}
