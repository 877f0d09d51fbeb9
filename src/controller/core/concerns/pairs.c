/* SPDX-License-Identifier: MIT */
/*
 * Dependencies between the elements of two arrays (AFTER_CORR, aftercorr of Slurm): element 3 starts when
 * element 3 of the other array has ended successfully. To the scheduler this is a dependency on the other
 * array as a whole. When an element of that ends, the waiting element with its index is split off, with a
 * dependency on the ended one in place of the array, which is settled at once. An element that was split off
 * before, because it was held for example, gets that dependency then. Elements without a partner wait for the
 * whole array.
 *
 * Elements are split off at the end of a turn, before waiting jobs whose dependency has failed are looked at,
 * and again when such a job was given up: a third array may wait for it.
 * After a start, and for a new job, all partners still in memory are looked at once.
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

struct waiting { // an array, or an element that was split off before its partner had ended
    uint64_t id;
    bool is_due; // all partners are to be looked at
};

struct core_pairs {
    struct waiting *waiting;
    size_t n_waiting;
    uint64_t *ended; // elements that ended in this turn
    size_t n_ended;
};

static bool is_waiting(const struct core_entry *entry)
{
    const struct job *job = entry != NULL ? entry->job : NULL;
    if (job == NULL || job->state != JOB_QUEUED || job->ask->after == NULL ||
        strstr(job->ask->after, after_kind_name(AFTER_CORR)) == NULL)
        return false;
    return job_is_array(job) ? job->array_left[0] != '\0' : job->array_job != 0 && job->attempt == 0;
}

/* Its dependencies, with the ended element in place of its array; NULL: it does not wait for that array. */
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

/* Those that run or wait on their own count; those whose partner has failed never run. */
static bool is_at_limit(const struct core *core, const struct core_entry *waiting)
{
    struct array array = { 0 };
    uint32_t open = 0;
    if (strchr(waiting->job->ask->array, '%') == NULL ||
        parse_array(waiting->job->ask->array, &array, NULL) < 0)
        return false;
    for (const struct core_entry *member = core_extra(waiting)->members; member != NULL;
         member = core_extra(member)->member_after) {
        struct sched_look look;
        bool is_never = sched_look(core->sched, member->job->id, core->now_ms, &look) &&
                        (look.blockers & BLOCK_NEVER) != 0;
        open += member->job->state != JOB_DONE && !is_never;
    }
    uint32_t limit = array.limit;
    array_clear(&array);
    return limit != 0 && open >= limit;
}

/* False if the array has no room for more running elements. */
static bool release(struct core *core, struct core_entry *waiting, const struct job *ended)
{
    if (!is_waiting(waiting))
        return true;
    bool is_array = job_is_array(waiting->job);
    _cleanup_free_ char *left = is_array ? array_without(waiting->job->array_left, ended->array_index) : NULL;
    bool is_partner = is_array ? left != NULL : waiting->job->array_index == ended->array_index;
    _cleanup_free_ char *after = is_partner ? replace(waiting->job, ended) : NULL;
    if (after == NULL)
        return true;
    if (!is_array)
        core_depend(core, waiting, after);
    else if (is_at_limit(core, waiting))
        return false;
    else
        (void)core_split_off(core, waiting, ended->array_index, after);
    return true;
}

/* Whatever ended before the array or the element was there, or while there was no room. */
static void look_at_all(struct core *core, struct core_entry *waiting)
{
    _cleanup_free_ struct ask_after *named = NULL;
    size_t count = 0;
    bool has_room = true;
    if (!is_waiting(waiting) || parse_after(waiting->job->ask->after, &named, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        struct core_entry *other = named[i].kind == AFTER_CORR ? core_find(core, named[i].job) : NULL;
        const struct core_entry *member = other != NULL ? core_extra(other)->members : NULL;
        for (; member != NULL && has_room; member = core_extra(member)->member_after)
            if (member->job->state == JOB_DONE)
                has_room = release(core, waiting, member->job);
    }
}

/* What ends meanwhile is looked at in another round. */
static bool run_turn(struct core *core)
{
    struct core_pairs *pairs = core->pairs;
    _cleanup_free_ uint64_t *ended_now = take_ptr(pairs->ended);
    size_t kept = 0, n_ended = pairs->n_ended;
    pairs->n_ended = 0;
    for (size_t i = 0; i < pairs->n_waiting; i++) {
        struct core_entry *waiting = core_find(core, pairs->waiting[i].id);
        for (size_t k = 0; k < n_ended; k++) {
            const struct core_entry *ended = core_find(core, ended_now[k]);
            if (ended != NULL && waiting != NULL)
                (void)release(core, waiting, ended->job);
        }
        if (pairs->waiting[i].is_due && waiting != NULL)
            look_at_all(core, waiting);
        if (is_waiting(waiting))
            pairs->waiting[kept++] = (struct waiting){ pairs->waiting[i].id, false };
    }
    pairs->n_waiting = kept;
    return pairs->n_ended > 0;
}

static void note(struct core *core, struct core_entry *entry)
{
    struct core_pairs *pairs = core->pairs;
    size_t i = 0;
    if (!is_waiting(entry))
        return;
    while (i < pairs->n_waiting && pairs->waiting[i].id != entry->job->id)
        i++;
    if (i == pairs->n_waiting) {
        pairs->waiting = xreallocarray(pairs->waiting, i + 1, sizeof(*pairs->waiting));
        pairs->waiting[pairs->n_waiting++].id = entry->job->id;
    }
    pairs->waiting[i].is_due = true;
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    struct core_pairs *pairs = core->pairs;
    uint32_t type = news->event->type;
    if (type == EVENT_SUBMITTED || type == EVENT_EDITED || type == EVENT_MEMBER)
        note(core, entry);
    if (entry->job->state != JOB_DONE || news->before == JOB_DONE || entry->job->array_job == 0 ||
        pairs->n_waiting == 0)
        return;
    pairs->ended = xreallocarray(pairs->ended, pairs->n_ended + 1, sizeof(*pairs->ended));
    pairs->ended[pairs->n_ended++] = entry->job->id;
}

static void init(struct core *core)
{
    core->pairs = xcalloc(1, sizeof(*core->pairs));
}

static void clear(struct core *core)
{
    free(core->pairs->waiting);
    free(core->pairs->ended);
    free(core->pairs);
}

const struct core_concern core_concern_pairs = {
    .name = "pairs",
    .init = init,
    .free = clear,
    .resume = note,
    .event = on_event,
    .turn = run_turn,
};
