/* SPDX-License-Identifier: MIT */
/*
 * Arrays. One record represents all elements until they start: an element is split off, as a separate job,
 * when the scheduler starts it, or earlier when it alone is cancelled, held or edited. An array is notified
 * of the end of each element, and is done with the last one.
 */
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

static void link_member(struct core *core, struct core_entry *entry)
{
    struct core_entry *array = entry->job->array_job != 0 ? core_find(core, entry->job->array_job) : NULL;
    if (array == NULL)
        return;
    struct core_extra *extra = core_make_extra(entry), *all = core_make_extra(array);
    extra->array = array;
    extra->member_after = all->members;
    if (all->members != NULL)
        core_make_extra(all->members)->member_before = entry;
    all->members = entry;
}

/* Called before it leaves memory: detaches an element from its array, and an array from its elements. */
static void unlink_member(struct core *core, struct core_entry *entry)
{
    const struct core_extra *extra = core_extra(entry);
    for (struct core_entry *member = extra->members; member != NULL;
         member = core_extra(member)->member_after)
        core_make_extra(member)->array = NULL;
    if (extra->array == NULL)
        return;
    *(extra->member_before != NULL ? &core_make_extra(extra->member_before)->member_after
                                   : &core_make_extra(extra->array)->members) = extra->member_after;
    if (extra->member_after != NULL)
        core_make_extra(extra->member_after)->member_before = extra->member_before;
    core_make_extra(entry)->array = NULL;
}

static void member_done(struct core *core, const struct core_entry *entry)
{
    const struct job *job = entry->job;
    struct core_entry *array = core_find(core, job->array_job);
    if (array == NULL || array->job->state != JOB_QUEUED || array->job->array_open == 0)
        return;
    struct job_event event = {
        .type = EVENT_MEMBER,
        .array_index = job->array_index,
        .element = job->id,
        .end = job->end,
        .exit_code = job->exit_code,
    };
    core_change(core, array, &event, NULL);
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    if (entry->job->array_job == 0)
        return;
    if (news->event->type == EVENT_SUBMITTED)
        link_member(core, entry);
    if (entry->job->state == JOB_DONE)
        member_done(core, entry);
}

const struct core_concern core_concern_arrays = {
    .name = "arrays",
    .load = link_member,
    .events = CORE_ON(EVENT_SUBMITTED) | CORE_ON_DONE,
    .event = on_event,
    .gone = unlink_member,
};
