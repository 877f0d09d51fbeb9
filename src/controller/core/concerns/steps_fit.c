/* SPDX-License-Identifier: MIT */
/* The resources of a job that are free for another step: CPUs, memory and GPUs on each node. */
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "controller/core/concerns/steps.h"
#include "job/slurm.h"

#define MILLI 1000U

const struct job_step_node *steps_node_of(const struct job_step *step, uint32_t rank)
{
    const struct job_step_node *nodes = step->nodes.items;
    for (size_t i = 0; i < step->nodes.count; i++)
        if (nodes[i].rank == rank)
            return &nodes[i];
    return NULL;
}

/* The CPUs of the job on a node: those that were allocated, or that its Slurm tasks need. 0: not limited. */
static uint64_t cpu_milli_on(const struct job *job, uint32_t rank)
{
    const char *tasks = slurm_note(&job->ask->slurm, SLURM_NOTE_TASKS);
    const char *each = slurm_note(&job->ask->slurm, SLURM_NOTE_CPUS_PER_TASK);
    uint64_t nodes = job_node_count(job), booked = job_run(job)->cpu_milli;
    if (job->ask->slurm.count == 0)
        return booked;
    uint64_t count = tasks != NULL ? strtoull(tasks, NULL, 10) : nodes;
    uint64_t here = count / nodes + (rank < count % nodes);
    uint64_t needed = here * (each != NULL ? strtoull(each, NULL, 10) : 1) * MILLI;
    return needed > booked ? needed : booked;
}

static uint64_t cpu_milli_of(const struct job_step *step, const struct job_step_node *node)
{
    return (uint64_t)node->tasks * (step->cpus_per_task > 0 ? step->cpus_per_task : 1) * MILLI;
}

/* "0,2": the first free ones; NULL: there are too few. */
static char *choose_gpus(const bool *taken, size_t count, uint32_t wanted)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (size_t i = 0; i < count && wanted > 0; i++)
        if (!taken[i]) {
            buffer_printf(&out, "%s%zu", out.length > 0 ? "," : "", i);
            wanted--;
        }
    return wanted == 0 ? buffer_take(&out) : NULL;
}

/* True if the share of `step` is free on this node, where the job has `gpus` GPUs, in addition to the running
 * steps of `share` (NULL: there are none). *ret_gpus are then its GPUs there, NULL if it requests none. */
static bool fits_node(const struct job *job, const struct job_share *share, const struct job_step *step,
    const struct job_step_node *node, size_t gpus, char **ret_gpus)
{
    const struct job_run *run = job_run(job);
    uint64_t cpu_milli = cpu_milli_of(step, node), memory = step->memory;
    _cleanup_free_ bool *taken = xcalloc(gpus + 1, sizeof(*taken));
    for (const struct step *other = share != NULL ? share->first : NULL; other != NULL; other = other->next) {
        const struct job_step_node *same = steps_node_of(&other->step, node->rank);
        if (!other->is_running || same == NULL || other->step.overlap || step->overlap)
            continue;
        if (!other->step.exact || !step->exact)
            return false;
        cpu_milli += cpu_milli_of(&other->step, same);
        memory += other->step.memory;
        for (size_t i = 0; i < gpus; i++)
            taken[i] |= job_step_has_gpu(same, i);
    }
    uint64_t most = cpu_milli_on(job, node->rank);
    if ((step->exact && most > 0 && cpu_milli > most) || (run->memory > 0 && memory > run->memory))
        return false;
    *ret_gpus = node->gpus > 0 ? choose_gpus(taken, gpus, node->gpus) : NULL;
    return node->gpus == 0 || *ret_gpus != NULL;
}

bool steps_fit(const struct job *job, const struct job_share *share, struct job_step *step)
{
    struct job_step_node *nodes = step->nodes.items;
    _cleanup_free_ size_t *gpus = job_count_gpus(job);
    for (size_t i = 0; i < step->nodes.count; i++) {
        size_t here = nodes[i].rank < job_node_count(job) ? gpus[nodes[i].rank] : 0;
        char *places = NULL;
        if (!fits_node(job, share, step, &nodes[i], here, &places))
            return false;
        free(nodes[i].gpu_places);
        nodes[i].gpu_places = places;
    }
    return true;
}
