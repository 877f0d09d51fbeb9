/* SPDX-License-Identifier: MIT */
/*
 * Arrays. One record stands for all elements until they start: an element is split off, as a job of its own,
 * when the scheduler starts it, or earlier when somebody cancels, holds or edits it alone. An array hears of
 * the end of each of its elements, and is done with the last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/private.h"
#include "job/array.h"

void core_link_member(struct core *core, struct core_job *entry)
{
    struct core_job *array = entry->job->array_job != 0 ? core_find(core, entry->job->array_job) : NULL;
    if (array == NULL)
        return;
    struct core_extra *extra = core_make_extra(entry), *all = core_make_extra(array);
    extra->array = array;
    extra->member_after = all->members;
    if (all->members != NULL)
        core_make_extra(all->members)->member_before = entry;
    all->members = entry;
}

/* Before it leaves memory: an element from its array, and an array from its elements. */
void core_unlink_member(struct core_job *entry)
{
    const struct core_extra *extra = core_extra(entry);
    for (struct core_job *member = extra->members; member != NULL; member = core_extra(member)->member_after)
        core_make_extra(member)->array = NULL;
    if (extra->array == NULL)
        return;
    *(extra->member_before != NULL ? &core_make_extra(extra->member_before)->member_after
                                   : &core_make_extra(extra->array)->members) = extra->member_after;
    if (extra->member_after != NULL)
        core_make_extra(extra->member_after)->member_before = extra->member_before;
    core_make_extra(entry)->array = NULL;
}

/* What the element's record begins with; its own event makes it an element. */
static struct job *make_element(uint64_t id, const struct job *array)
{
    struct job_spec shell = { .ask = *array->ask, .name = array->name }; // borrowed: nothing of it is freed
    struct job *job = job_new(id, &shell);
    free(job->summary);
    job->summary = xstrdup(array->summary);
    return job;
}

struct core_job *core_split(struct core *core, struct core_job *array, uint32_t index)
{
    uint64_t id = ++core->last_job;
    struct job_event split = { .type = EVENT_SPLIT, .array_index = index, .element = id };
    core_change(core, array, &split, NULL);
    struct core_job *entry = job_table_add(&core->jobs, make_element(id, array->job));
    core_count_open(core, array->job->uid);
    core_pass_waiters(core, array->job->id, index, id);
    struct job_ask ask;
    job_ask_copy(&ask, array->job->ask);
    free(take_ptr(ask.array));
    struct job_event event = {
        .type = EVENT_SUBMITTED,
        .uid = array->job->uid,
        .gid = array->job->gid,
        .array_job = array->job->id,
        .array_index = index,
        .hold = array->job->hold,
        .name = array->job->name,
        .ask = { .items = &ask, .count = 1 },
    };
    core_change(core, entry, &event, NULL);
    job_ask_clear(&ask);
    core_link_member(core, entry);
    return entry;
}

void core_member_done(struct core *core, const struct core_job *entry)
{
    const struct job *job = entry->job;
    struct core_job *array = core_find(core, job->array_job);
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

static bool is_left(const struct job *array, uint32_t index)
{
    _cleanup_free_ char *rest = array->state == JOB_QUEUED ? array_without(array->array_left, index) : NULL;
    return rest != NULL;
}

/* What the scheduler has heard of those for which the array waits. They may have left memory since: it is not
 * to wait for them anew until the store has said the same. */
static void read_settled(const struct core *core, const struct job *array, struct core_facts *ret)
{
    _cleanup_free_ struct ask_after *named = NULL;
    size_t count = 0;
    struct error err;
    *ret = (struct core_facts){ .may_lack = true };
    if (array->ask->after == NULL || parse_after(array->ask->after, &named, &count, &err) < 0)
        return;
    ret->items = xcalloc(count, sizeof(*ret->items));
    for (size_t i = 0; i < count; i++) {
        enum sched_wait wait = sched_wait_of(core->sched, array->id, named[i].job);
        bool is_true = wait == SCHED_WAIT_TRUE;
        if (wait != SCHED_WAIT_OPEN)
            ret->items[ret->count++] =
                (struct core_fact){ named[i].job, is_true == (named[i].kind != AFTER_FAIL) };
    }
}

uint64_t core_element(struct core *core, int64_t boot_ms, int64_t wall_ms, uint64_t array, uint32_t index,
    bool is_split, bool *ret_waits)
{
    struct core_job *entry = core_find(core, array);
    *ret_waits = false;
    if (entry == NULL || !job_is_array(entry->job))
        return 0;
    for (const struct core_job *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after)
        if (member->job->array_index == index)
            return member->job->id;
    *ret_waits = is_left(entry->job, index);
    if (!*ret_waits || !is_split)
        return 0;
    core_begin(core, boot_ms, wall_ms);
    struct core_facts facts;
    read_settled(core, entry->job, &facts);
    struct core_job *element = core_split(core, entry, index);
    core_enqueue(core, entry, &facts, true);
    core_enqueue(core, element, &facts, false);
    free(facts.items);
    return element->job->id;
}
