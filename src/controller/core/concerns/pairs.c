/* SPDX-License-Identifier: MIT */
/*
 * Dependencies between the elements of two arrays (AFTER_CORR, aftercorr of Slurm): element 3 starts when
 * element 3 of the other array has ended successfully. To the scheduler this is a dependency on the other
 * array as a whole. When an element of that array ends, the waiting element with the same index is split off,
 * with a dependency on the ended element in place of the array, which is settled at once. An element that was
 * split off before, for example because it was held, gets that dependency at the same time. Elements without
 * a partner wait for the whole array.
 *
 * Elements are split off at the end of a turn, before waiting jobs whose dependency has failed are checked,
 * and again after such a job was given up, because a third array may wait for it. After a start, and for a
 * new job, all partners still in memory are checked once.
 *
 * Each array has a list of the jobs that wait for its elements, in core_extra, so an end causes no work for
 * other waiting jobs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/split.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/array.h"

/* A job that waits for elements of this array. */
struct pair {
    struct core_entry *waiting;
    struct core_entry *array;    // NULL: it has left memory
    struct pair *before, *after; // other pairs that wait for the same array
};

/* List of an array, or of an element that was split off before its partner had ended. */
struct pair_list {
    struct pair *pairs;
    size_t count;
    bool is_due; // all partners are to be checked
};

struct core_pairs {
    uint64_t *ended; // elements of arrays with waiting jobs that ended in this turn
    size_t n_ended;
    uint64_t *due; // waiting jobs
    size_t n_due;
};

static void add_id(uint64_t **ids, size_t *count, uint64_t id)
{
    *ids = xreallocarray(*ids, *count + 1, sizeof(**ids));
    (*ids)[(*count)++] = id;
}

/* --- who waits for which array --- */

/* True for an array with elements left, or an element that has not started. */
static bool can_wait(const struct job *job)
{
    if (job->state != JOB_QUEUED || job->ask->after == NULL)
        return false;
    return job_is_array(job) ? job->array_left[0] != '\0' : job->array_job != 0 && job->attempt == 0;
}

static void link_pair(struct pair *pair)
{
    struct core_extra *array = core_make_extra(pair->array);
    pair->before = array->pair_last;
    *(pair->before != NULL ? &pair->before->after : &array->pair_first) = pair;
    array->pair_last = pair;
}

static void unlink_pair(struct pair *pair)
{
    struct core_extra *array = core_make_extra(pair->array);
    *(pair->before != NULL ? &pair->before->after : &array->pair_first) = pair->after;
    *(pair->after != NULL ? &pair->after->before : &array->pair_last) = pair->before;
}

static void forget_pairs(struct core_entry *waiting)
{
    struct pair_list *list = core_extra(waiting)->pairs;
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (list->pairs[i].array != NULL)
            unlink_pair(&list->pairs[i]);
    free(list->pairs);
    free(list);
    core_make_extra(waiting)->pairs = NULL;
}

/* The array that it waits for element by element, while in memory; NULL: it is another kind of dependency. */
static struct core_entry *array_of(const struct core *core, const struct ask_after *after)
{
    struct core_entry *array = after->kind == AFTER_CORR ? core_find(core, after->job) : NULL;
    return array != NULL && job_is_array(array->job) ? array : NULL;
}

static void make_pairs(const struct core *core, struct core_entry *waiting)
{
    _cleanup_free_ struct ask_after *named = NULL;
    size_t count = 0, n_arrays = 0;
    const char *after = can_wait(waiting->job) ? waiting->job->ask->after : NULL;
    if (after == NULL || strstr(after, after_kind_name(AFTER_CORR)) == NULL ||
        parse_after(after, &named, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        n_arrays += array_of(core, &named[i]) != NULL;
    if (n_arrays == 0)
        return;
    struct pair_list *list = xcalloc(1, sizeof(*list));
    list->pairs = xcalloc(n_arrays, sizeof(*list->pairs));
    for (size_t i = 0; i < count; i++) {
        struct core_entry *array = array_of(core, &named[i]);
        if (array == NULL)
            continue;
        list->pairs[list->count] = (struct pair){ .waiting = waiting, .array = array };
        link_pair(&list->pairs[list->count++]);
    }
    core_make_extra(waiting)->pairs = list;
}

static void make_due(struct core *core, const struct core_entry *waiting)
{
    struct pair_list *list = core_extra(waiting)->pairs;
    if (list == NULL || list->is_due)
        return;
    list->is_due = true;
    add_id(&core->pairs->due, &core->pairs->n_due, waiting->job->id);
}

static void note(struct core *core, struct core_entry *entry)
{
    forget_pairs(entry);
    make_pairs(core, entry);
    make_due(core, entry);
}

static void gone(struct core *core, struct core_entry *entry)
{
    forget_pairs(entry);
    for (struct pair *pair = core_extra(entry)->pair_first; pair != NULL; pair = pair->after)
        pair->array = NULL;
}

/* --- splitting off --- */

/* Its dependencies, with the ended element in place of its array; NULL if it does not wait for that array. */
static char *replace(const struct job *waiting, const struct job *ended)
{
    struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(waiting->ask->after);
    _cleanup_free_ char *pair = xasprintf("%" PRIu64 ":%s", ended->array_job, after_kind_name(AFTER_CORR));
    const char *separator = strchr(copy, '?') != NULL ? "?" : ",";
    bool is_found = false;
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, separator)) != NULL;) {
        bool is_pair = strcmp(word, pair) == 0;
        buffer_append_text(&out, out.length > 0 ? separator : "");
        if (is_pair)
            buffer_printf(&out, "%" PRIu64 ":%s", ended->id, after_kind_name(AFTER_OK));
        else
            buffer_append_text(&out, word);
        is_found |= is_pair;
    }
    if (is_found)
        return buffer_take(&out);
    buffer_clear(&out);
    return NULL;
}

/* Elements that run or wait on their own count; those whose partner has failed never run. */
static bool is_at_limit(const struct core *core, const struct core_entry *waiting)
{
    struct array array = { 0 };
    uint32_t open = 0;
    if (strchr(waiting->job->ask->array, '%') == NULL ||
        parse_array(waiting->job->ask->array, &array, NULL) < 0)
        return false;
    for (const struct core_entry *member = core_extra(waiting)->members; member != NULL;
         member = core_extra(member)->member_after) {
        struct sched_job_status status;
        bool is_never = sched_job_status(core->sched, member->job->id, core->now_ms, &status) &&
                        (status.blockers & BLOCK_NEVER) != 0;
        open += member->job->state != JOB_DONE && !is_never;
    }
    uint32_t limit = array.limit;
    array_clear(&array);
    return limit != 0 && open >= limit;
}

/* False if the array may not have more running elements. `waiting` NULL: it has left memory. */
static bool release(struct core *core, struct core_entry *waiting, const struct job *ended)
{
    if (waiting == NULL || !can_wait(waiting->job))
        return true;
    bool is_array = job_is_array(waiting->job);
    _cleanup_free_ char *left = is_array ? array_without(waiting->job->array_left, ended->array_index) : NULL;
    bool is_partner = is_array ? left != NULL : waiting->job->array_index == ended->array_index;
    if (is_partner && is_array && is_at_limit(core, waiting))
        return false;
    _cleanup_free_ char *after = is_partner ? replace(waiting->job, ended) : NULL;
    if (after == NULL)
        return true;
    if (is_array)
        (void)core_split_off(core, waiting, ended->array_index, after);
    else
        core_depend(core, waiting, after);
    return true;
}

/* Each release may change the list. */
static void release_partners(struct core *core, const struct core_entry *ended)
{
    const struct core_entry *array = core_extra(ended)->array;
    _cleanup_free_ uint64_t *waiting = NULL;
    size_t count = 0;
    const struct pair *pair = array != NULL ? core_extra(array)->pair_first : NULL;
    for (; pair != NULL; pair = pair->after)
        add_id(&waiting, &count, pair->waiting->job->id);
    for (size_t i = 0; i < count; i++)
        (void)release(core, core_find(core, waiting[i]), ended->job);
}

/* Checks elements that ended before the array or the element existed, or while the limit was reached. */
static void check_all(struct core *core, struct core_entry *waiting)
{
    _cleanup_free_ uint64_t *arrays = NULL;
    size_t count = 0;
    bool has_room = true;
    const struct pair_list *list = core_extra(waiting)->pairs;
    for (size_t i = 0; i < list->count; i++)
        if (list->pairs[i].array != NULL)
            add_id(&arrays, &count, list->pairs[i].array->job->id);
    for (size_t i = 0; i < count && has_room; i++) {
        const struct core_entry *array = core_find(core, arrays[i]);
        const struct core_entry *member = array != NULL ? core_extra(array)->members : NULL;
        for (; member != NULL && has_room; member = core_extra(member)->member_after)
            if (member->job->state == JOB_DONE)
                has_room = release(core, waiting, member->job);
    }
}

/* Elements that end meanwhile are checked in another round. */
static bool run_turn(struct core *core)
{
    struct core_pairs *pairs = core->pairs;
    _cleanup_free_ uint64_t *ended_now = take_ptr(pairs->ended);
    size_t n_ended = pairs->n_ended;
    pairs->n_ended = 0;
    for (size_t i = 0; i < n_ended; i++) {
        const struct core_entry *ended = core_find(core, ended_now[i]);
        if (ended != NULL)
            release_partners(core, ended);
    }
    for (size_t i = 0; i < pairs->n_due; i++) { // a release may add more
        struct core_entry *waiting = core_find(core, pairs->due[i]);
        struct pair_list *list = waiting != NULL ? core_extra(waiting)->pairs : NULL;
        if (list == NULL || !list->is_due)
            continue;
        list->is_due = false;
        check_all(core, waiting);
    }
    free(take_ptr(pairs->due));
    pairs->n_due = 0;
    return pairs->n_ended > 0;
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    struct core_pairs *pairs = core->pairs;
    const struct core_entry *array = core_extra(entry)->array;
    uint32_t type = news->event->type;
    bool has_ended = (news->bits & CORE_ON_DONE) != 0;
    if (type == EVENT_SUBMITTED || type == EVENT_EDITED)
        note(core, entry);
    if (type == EVENT_MEMBER)
        make_due(core, entry);
    if (has_ended)
        forget_pairs(entry);
    if (has_ended && array != NULL && core_extra(array)->pair_first != NULL)
        add_id(&pairs->ended, &pairs->n_ended, entry->job->id);
}

static void init(struct core *core)
{
    core->pairs = xcalloc(1, sizeof(*core->pairs));
}

static void clear(struct core *core)
{
    free(core->pairs->due);
    free(core->pairs->ended);
    free(core->pairs);
}

const struct core_concern core_concern_pairs = {
    .name = "pairs",
    .init = init,
    .free = clear,
    .resume = note,
    .events = CORE_ON(EVENT_SUBMITTED) | CORE_ON(EVENT_EDITED) | CORE_ON(EVENT_MEMBER) | CORE_ON_DONE,
    .event = on_event,
    .gone = gone,
    .turn = run_turn,
};
