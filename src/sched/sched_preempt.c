/* SPDX-License-Identifier: MIT */
/*
 * Preemption. A preemptible job, and one that does not use its GPUs, may keep them while no other job needs
 * them; if a job that is not preemptible is blocked, and would fit without some of them, those are stopped:
 * the ones that lose the least work.
 */
#include "sched/sched_private.h"

#define ASK_AGAIN_MS 600000 // after preemptions that did not help, a job preempts no others for this time

/* Jobs that yield and come after the class; one of a higher priority would only preempt it in turn. */
static bool may_move(const struct sched *sched, const struct queue_class *class, const struct sched_run *run)
{
    return sched_run_yields(run) && class_priority(run->job->class) <= class_priority(class);
}

/* The work that would be thrown away, in GPU-milliseconds. */
static double loss_of(const struct sched *sched, const struct sched_run *run)
{
    return (double)run->gpu_milli / SHARE_WHOLE * (double)(sched->now_ms - run->allocated_ms + 1);
}

/* Jobs already being preempted first, then the youngest, which lose least. */
static int compare_ages(const void *a, const void *b)
{
    const struct sched_run *left = *(struct sched_run *const *)a, *right = *(struct sched_run *const *)b;
    if (left->is_giving_way != right->is_giving_way)
        return left->is_giving_way ? -1 : 1;
    if (left->allocated_ms != right->allocated_ms)
        return left->allocated_ms > right->allocated_ms ? -1 : 1;
    return (left->job->entry.job < right->job->entry.job) - (left->job->entry.job > right->job->entry.job);
}

static const struct way_rules rules = {
    .may_move = may_move,
    .compare = compare_ages,
    .loss = loss_of,
    .why = "a non-preemptible job needs its GPUs",
};

bool sched_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    bool was_asked = class->asked_ms != 0 && sched->now_ms - class->asked_ms < ASK_AGAIN_MS;
    if (was_asked || !sched_make_ways(sched, class, fit, &rules))
        return false; // not repeatedly for one job
    class->asked_ms = sched->now_ms;
    return true;
}
