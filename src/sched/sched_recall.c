/* SPDX-License-Identifier: MIT */
/*
 * A parked job whose GPUs are partly idle, and that cannot return because others still run on the rest, gets
 * its GPUs back before it is due if it would no longer be parked for those others: if their remaining time,
 * times park_ratio and times the GPUs that it left per GPU in use, exceeds its own remaining time. Otherwise
 * most of a wide job's GPUs could be idle for one long guest, because guests take longer than expected, and
 * owed GPUs are closed to jobs that cannot be parked. The check is made only if nothing else starts, so no
 * other job could use the idle GPUs. The jobs that run there are parked for it like hosts for a guest, under
 * the same bounds.
 */
#include "sched/sched_private.h"

static bool runs_on(const struct sched_run *run, const struct allocation *left)
{
    for (size_t i = 0; i < run->allocation.n_gpus; i++)
        for (size_t k = 0; k < left->n_gpus; k++)
            if (run->allocation.gpus[i].node == left->gpus[k].node &&
                run->allocation.gpus[i].gpu == left->gpus[k].gpu)
                return true;
    return false;
}

static uint32_t count_used(const struct sched *sched, const struct allocation *left)
{
    uint32_t used = 0;
    for (size_t i = 0; i < left->n_gpus; i++)
        used += !cluster_gpu_is_whole(&sched->cluster.nodes[left->gpus[i].node].gpus[left->gpus[i].gpu]);
    return used;
}

static bool may_leave(const struct sched *sched, const struct sched_run *run, const struct queue_class *class)
{
    return !run->is_giving_way && class_priority(run->job->class) <= class_priority(class) &&
           !sched_is_preferred(run->job->class, class) && !sched_run_is_kept(sched, run) &&
           sched_run_can_park(sched, run);
}

/* The jobs on its GPUs, if all of them may be parked. 0: not all may. */
static size_t list_guests(const struct sched *sched, const struct parked_job *parked,
    struct sched_run *guests[TRIAL_MAX], int64_t *ret_longest_ms)
{
    const struct node_runs *runs = &sched->nodes[parked->left.nodes[0].node];
    size_t count = 0;
    *ret_longest_ms = 0;
    for (size_t i = 0; i < runs->count; i++) {
        struct sched_run *run = runs->runs[i];
        if (!runs_on(run, &parked->left))
            continue;
        if (count == TRIAL_MAX || !may_leave(sched, run, parked->job->class))
            return 0;
        int64_t left_ms = run->expected_end_ms - sched->now_ms;
        *ret_longest_ms = left_ms > *ret_longest_ms ? left_ms : *ret_longest_ms;
        guests[count++] = run;
    }
    return count;
}

static bool recall(struct sched *sched, struct parked_job *parked)
{
    struct sched_run *guests[TRIAL_MAX];
    struct sched_job *job = parked->job;
    uint32_t used = count_used(sched, &parked->left), all = (uint32_t)parked->left.n_gpus;
    int64_t longest_ms;
    bool is_waiting = job->blockers == 0 && job->entry.class != NULL && !job->entry.class->is_parked;
    if (!is_waiting || used == 0 || used == all || parked->left.nodes[0].node >= sched->n_nodes)
        return false;
    size_t count = list_guests(sched, parked, guests, &longest_ms);
    if (count == 0 || longest_ms <= parked->needs_ms / sched->settings.park_ratio / all * used)
        return false;
    uint64_t reservations[16];
    struct fit fit;
    (void)sched_parked_lift(sched, job);
    sched_fit_of(sched, job->class, reservations, 16, &fit);
    fit.end_ms = sched->now_ms;
    bool is_good = sched_would_start(sched, job->class, &fit, guests, count, 0);
    sched_parked_put(sched, parked);
    return is_good && sched_give_back_all(sched, guests, count, job->entry.job, 0);
}

void sched_recall(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_parked && sched_parks(sched); i++)
        if (recall(sched, sched->parked[i]))
            return;
}
