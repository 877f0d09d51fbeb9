/* SPDX-License-Identifier: MIT */
/* Describes a job for the scheduler from the job record alone, so that a start gives the same result as the
 * submit. */
#include "controller/core/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/array.h"

bool core_is_ok(const struct job *job)
{
    return job->end == END_EXIT && job->exit_code == 0;
}

/* What is known about the end of a job that another one waits for. */
enum outcome { OUTCOME_OPEN, OUTCOME_OK, OUTCOME_BAD, OUTCOME_UNKNOWN };

static enum outcome outcome_of(const struct core *core, const struct core_facts *facts, uint64_t id)
{
    const struct core_entry *entry = core_find(core, id);
    if (entry != NULL && entry->job->state != JOB_DONE)
        return OUTCOME_OPEN;
    if (entry != NULL)
        return core_is_ok(entry->job) ? OUTCOME_OK : OUTCOME_BAD;
    for (size_t i = 0; facts != NULL && i < facts->count; i++)
        if (facts->items[i].job == id)
            return facts->items[i].is_ok ? OUTCOME_OK : OUTCOME_BAD;
    return OUTCOME_UNKNOWN;
}

int64_t core_began_ms(const struct job *job)
{
    return job->started_ms != 0 ? job->started_ms : job->state == JOB_DONE ? job->ended_ms : 0;
}

static int64_t began_ms(const struct core *core, const struct core_facts *facts, uint64_t id)
{
    const struct core_entry *entry = core_find(core, id);
    if (entry != NULL)
        return core_began_ms(entry->job);
    for (size_t i = 0; facts != NULL && i < facts->count; i++)
        if (facts->items[i].job == id)
            return facts->items[i].began_ms;
    return 0;
}

/* True if it was settled before, by the start of a running job or the end of one. Otherwise, sets the end of
 * a delay that has begun. */
static bool is_settled(
    const struct core *core, const struct core_facts *facts, struct ask_after *after, enum outcome outcome)
{
    if (after->kind != AFTER_START)
        return outcome == OUTCOME_OK || outcome == OUTCOME_BAD;
    int64_t began = began_ms(core, facts, after->job);
    after->due_ms = began != 0 && after->delay_ms != 0 ? began + after->delay_ms : 0;
    bool is_over = outcome != OUTCOME_OPEN && outcome != OUTCOME_UNKNOWN;
    return (began != 0 || is_over) && after->due_ms <= core->now_ms;
}

/* Ended dependencies are settled here: satisfied ones are omitted, and those that can never be satisfied come
 * last. */
static int read_after(const struct core *core, const struct job *job, const struct core_facts *facts,
    struct description *ret, struct error *err)
{
    _cleanup_free_ struct ask_after *named = NULL;
    size_t count = 0, n_never = 0;
    if (job->ask->after == NULL)
        return 0;
    int r = parse_after(job->ask->after, &named, &count, err);
    if (r < 0)
        return r;
    ret->after = xcalloc(count, sizeof(*ret->after));
    ret->unknown = xcalloc(count, sizeof(*ret->unknown));
    for (size_t i = 0; i < count; i++) {
        enum outcome outcome = outcome_of(core, facts, named[i].job);
        if (outcome == OUTCOME_UNKNOWN && facts != NULL && !facts->may_lack) {
            (void)error_set(
                err, -EINVAL, "it would depend on job %" PRIu64 ", which does not exist", named[i].job);
            return error_hint(err, "all jobs: mgpu ps -a");
        }
        if (outcome == OUTCOME_UNKNOWN)
            ret->unknown[ret->n_unknown++] = named[i].job;
        if (!is_settled(core, facts, &named[i], outcome))
            ret->after[ret->n_open++] = named[i];
        else if (!after_comes_true(named[i].kind, outcome == OUTCOME_OK))
            ret->after[count - ++n_never] = named[i];
    }
    bool is_any = count > 0 && named[0].is_any;
    if (is_any && ret->n_open + n_never < count)
        ret->n_open = ret->n_unknown = n_never = 0; // one is satisfied
    if (is_any && ret->n_open > 0)
        n_never = 0;
    for (size_t i = 0; i < n_never; i++)
        ret->after[ret->n_open + i] = ret->after[count - n_never + i];
    ret->spec.after = ret->after;
    ret->spec.n_after = ret->n_open + n_never;
    return 0;
}

static int read_elements(const struct job *job, struct sched_job_spec *spec, struct error *err)
{
    struct array array = { 0 };
    if (!job_is_array(job))
        return 0;
    int r = parse_array(job->ask->array, &array, err);
    if (r < 0)
        return r;
    spec->is_array = true;
    spec->element_limit = array.limit;
    spec->elements_open = job->array_open;
    array_clear(&array);
    if (job_is_split_up(job))
        return 0;
    r = parse_array(job->array_left, &array, err);
    if (r < 0)
        return r;
    spec->elements = array_size(&array);
    array_clear(&array);
    return 0;
}

/* Nodes that have refused the job are excluded, like those that it excludes itself. */
static void leave_out(const struct core *core, uint64_t id, struct sched_request *request)
{
    const struct core_entry *entry = core_find(core, id);
    const char *refused = entry != NULL ? core_extra(entry)->refused_by : NULL;
    if (refused == NULL)
        return;
    char *all = request->exclude == NULL ? xstrdup(refused) : xasprintf("%s,%s", request->exclude, refused);
    free(request->exclude);
    request->exclude = all;
}

int core_describe(const struct core *core, const struct job *job, const struct core_facts *facts,
    struct description *ret, struct error *err)
{
    const struct job_ask *ask = job->ask;
    const struct core_entry *array = job->array_job != 0 ? core_find(core, job->array_job) : NULL;
    int64_t submit_ms = array != NULL ? array->job->submitted_ms
                                      : job->submitted_ms; // an element has been waiting as long as its array
    *ret = (struct description){ .spec = {
        .id = job->id,
        .submit_ms = job->queued_ms != 0 ? job->queued_ms : submit_ms,
        .begin_ms = ask->begin_ms,
        .deadline_ms = ask->deadline_ms,
        .hold = job->hold,
        .array = job->array_job,
        .preemptions = job->preemptions,
        .key = {
            .uid = job->uid,
            .gid = job_group(job),
            .priority = ask_priority_of_all(ask),
            .own_priority = ask_priority_of_own(ask),
            .is_preemptible = ask->preemptible,
            .had_turn = job_had_turn(job),
            .has_begun = job_is_early(job) && job_is_parked(job),
            .limit_ms = ask->time_limit_ms,
            .command_hash = core_command_hash(job),
        },
    } };
    int r = request_from_ask(ask, &ret->spec.key.request, err);
    if (r == 0)
        leave_out(core, job->id, &ret->spec.key.request);
    if (r == 0)
        r = read_elements(job, &ret->spec, err);
    if (r == 0)
        r = read_after(core, job, facts, ret, err);
    if (r < 0)
        description_clear(ret);
    return r;
}

void description_clear(struct description *description)
{
    request_clear(&description->spec.key.request);
    free(description->after);
    free(description->unknown);
    *description = (struct description){ 0 };
}
