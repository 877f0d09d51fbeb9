/* SPDX-License-Identifier: MIT */
/* What must be true of an element that is committed behind another (job/behind.h), as the events tell. */
#include "box.h"
#include "job/behind.h"

#define FEW  5U
#define MANY 10U // enough for an array to have a pace

uint32_t box_elements(const struct box *box)
{
    return box->has_behind ? MANY : FEW;
}

static bool is_same_place(const struct job *leader, const struct job_event *event)
{
    const struct gpu_grant *theirs = leader->grants.items, *ours = event->gpus.items;
    bool is_same = leader->grants.count == event->gpus.count && text_equal(leader->node, event->node);
    for (size_t i = 0; is_same && i < event->gpus.count; i++)
        is_same = text_equal(theirs[i].uuid, ours[i].uuid) && theirs[i].slot == 0 && ours[i].slot == 0;
    return is_same;
}

void box_judge_behind(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event)
{
    const struct job *leader = jobs[box_index(event->behind)];
    if (leader == NULL || leader->array_job != job->array_job || !job_holds_gpus(leader))
        box_break(box, "it was committed behind a job that is no element with GPUs of its array", job->id);
    else if (!is_same_place(leader, event))
        box_break(box, "it was committed behind one with other GPUs", job->id);
    for (size_t i = 1; i <= highest; i++)
        if (jobs[i] != NULL && job_is_behind(jobs[i]) && job_park(jobs[i])->behind == event->behind)
            box_break(box, "two elements are behind the same one", job->id);
}

static bool is_over(const struct job_event *event)
{
    return event->type == EVENT_ENDED || event->type == EVENT_REQUEUED || event->type == EVENT_RETURNED;
}

/* What became of the attempt that began behind another: had it its GPUs, and was it over, or known to run,
 * before? */
static void count_one(struct box *box, size_t at)
{
    const struct job_event *begin = &box->events[at].event;
    uint64_t *counts = box->tally.counts;
    bool has_begun = false;
    for (size_t i = at + 1; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        if (event->job != begin->job || event->attempt != begin->attempt)
            continue;
        has_begun |=
            event->type == EVENT_STARTED || event->type == EVENT_ENDED || event->type == EVENT_REQUEUED;
        counts[TALLY_BEHIND_RETURNS] += event->type == EVENT_RETURNED;
        counts[TALLY_BEHIND_INHERITS] += event->type == EVENT_INHERITS;
        if (event->type != EVENT_INHERITS && !is_over(event))
            continue;
        counts[TALLY_BEHIND_FIRST] += has_begun;
        return;
    }
}

void box_count_behind(struct box *box)
{
    for (size_t i = 0; i < box->n_events; i++) {
        if (box->events[i].event.behind == 0)
            continue;
        box->tally.counts[TALLY_BEHIND]++;
        count_one(box, i);
    }
}
