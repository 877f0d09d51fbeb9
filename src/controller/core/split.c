/* SPDX-License-Identifier: MIT */
/* Splits an element off its array, as a job of its own. */
#include "controller/core/split.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/change.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

/* What the element's record begins with; its own event makes it an element. */
static struct job *make_element(uint64_t id, const struct job *array)
{
    struct job_spec shell = { .ask = *array->ask, .name = array->name }; // borrowed: nothing of it is freed
    struct job *job = job_new(id, &shell);
    free(job->summary);
    job->summary = xstrdup(array->summary);
    return job;
}

struct core_entry *core_split(struct core *core, struct core_entry *array, uint32_t index)
{
    uint64_t id = ++core->last_job;
    struct job_event split = { .type = EVENT_SPLIT, .array_index = index, .element = id };
    core_change(core, array, &split, NULL);
    struct core_entry *entry = job_table_add(&core->jobs, make_element(id, array->job));
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
    return entry;
}
