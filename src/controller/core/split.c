/* SPDX-License-Identifier: MIT */
/* Splits elements off their arrays, as separate jobs, and changes the dependencies of such jobs. */
#include "controller/core/split.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/change.h"
#include "controller/core/enqueue.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

/* The initial record of the element; its own event makes it an element. */
static struct job *make_element(uint64_t id, const struct job *array, const struct job_ask *ask)
{
    struct job_spec shell = { .ask = *ask, .name = array->name }; // borrowed: none of it is freed
    struct job *job = job_new(id, &shell);
    free(job->summary);
    job->summary = xstrdup(array->summary);
    return job;
}

struct core_entry *core_split(struct core *core, struct core_entry *array, uint32_t index, const char *after)
{
    uint64_t id = ++core->last_job;
    struct job_event split = { .type = EVENT_SPLIT, .array_index = index, .element = id };
    core_change(core, array, &split, NULL);
    _cleanup_(job_ask_clear) struct job_ask ask;
    job_ask_copy(&ask, array->job->ask);
    char *own_after = after != NULL ? xstrdup(after) : NULL; // `after` may belong to the array
    free(ask.after);
    ask.after = own_after;
    struct core_entry *entry = job_table_add(&core->jobs, make_element(id, array->job, &ask));
    free(take_ptr(ask.array));
    struct event_credential credential = { .token = array->job->api_token };
    struct job_event event = {
        .type = EVENT_SUBMITTED,
        .uid = array->job->uid,
        .gid = array->job->gid,
        .account = array->job->account,
        .array_job = array->job->id,
        .array_index = index,
        .hold = array->job->hold,
        .name = array->job->name,
        .ask = { .items = &ask, .count = 1 },
        .credential = { .items = &credential, .count = credential.token != 0 },
    };
    core_change(core, entry, &event, NULL);
    return entry;
}

/* The results that the scheduler has received for the array's dependencies. Those jobs may have left memory
 * since, and the element must not wait for them until the store has confirmed the results. */
static void read_settled(const struct core *core, const struct job *array, struct core_facts *ret)
{
    _cleanup_free_ struct ask_after *named = NULL;
    size_t count = 0;
    struct error err;
    *ret = (struct core_facts){ .may_lack = true };
    if (array->ask->after == NULL || parse_after(array->ask->after, &named, &count, &err) < 0)
        return;
    ret->items = xcalloc(count, sizeof(*ret->items));
    bool is_any_open = false;
    for (size_t i = 0; i < count && named[i].is_any; i++)
        is_any_open |= sched_wait_of(core->sched, array->id, named[i].job) == SCHED_WAIT_OPEN;
    for (size_t i = 0; i < count; i++) {
        enum sched_wait wait = sched_wait_of(core->sched, array->id, named[i].job);
        /* Of several dependencies of which one suffices, those that were given up are removed; when one is
         * satisfied, all are. */
        bool is_true = wait == SCHED_WAIT_TRUE && !is_any_open;
        if (wait != SCHED_WAIT_OPEN)
            ret->items[ret->count++] =
                (struct core_fact){ named[i].job, is_true == (named[i].kind != AFTER_FAIL) };
    }
}

struct core_entry *core_split_off(
    struct core *core, struct core_entry *array, uint32_t index, const char *after)
{
    struct core_facts facts;
    read_settled(core, array->job, &facts);
    struct core_entry *element = core_split(core, array, index, after);
    core_enqueue(core, array, &facts, true);
    core_enqueue(core, element, &facts, false);
    free(facts.items);
    return element;
}

void core_depend(struct core *core, struct core_entry *element, const char *after)
{
    struct core_facts facts;
    struct job_ask ask;
    read_settled(core, element->job, &facts);
    job_ask_copy(&ask, element->job->ask);
    free(ask.after);
    ask.after = xstrdup(after);
    struct job_event event = {
        .type = EVENT_EDITED, .uid = core->options.admin_uid, .ask = { .items = &ask, .count = 1 }
    };
    core_change(core, element, &event, NULL);
    job_ask_clear(&ask);
    core_enqueue(core, element, &facts, true);
    free(facts.items);
}
