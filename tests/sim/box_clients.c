/* SPDX-License-Identifier: MIT */
/*
 * Clients: they submit until they have an answer, with the same key, and cancel, hold, park, edit and do
 * other things to their jobs. When the storm is over they let go of everything, so that each job can end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "controller/core/state.h"

#define CLIENTS        8U
#define PLAIN_COMMANDS 211U
#define QUICK_COMMANDS 5U
#define SHORT_LIMIT_MS 300 // in mild histories
#define LONG_LIMIT_MS  9000

static const struct identity users[] = {
    { .is_known = true, .uid = 1000, .gid = 1000, .may_raise = true },
    { .is_known = true, .uid = 1001, .gid = 1000, .may_raise = true },
    { .is_known = true, .uid = 1002, .gid = 1001, .may_raise = true },
};

static void ask_again(void *arg, uint64_t life, void *object);

/* Of a store that is not known to be an old one, ids are those that were given before. */
static bool is_given_again(const struct box *box, const struct ask *ask, uint64_t job)
{
    return job > RESTORE_GAP && ask->undone == job;
}

void box_reply(void *arg, void *request, const struct core_answer *answer)
{
    struct box *box = arg;
    struct ask *ask = request;
    if (ask == NULL)
        return;
    ask->is_waiting = false;
    if (ask->is_fence) {
        ask->is_fenced = answer->code == 0;
        return;
    }
    bool is_too_large = answer->code == -ERANGE || answer->code == -EBADSLT;
    if (is_too_large && !ask->is_sizeable) // it asks again
        return;
    if (answer->code < 0) {
        box_break(box, "a good submit was refused", 0);
        (void)fprintf(stderr, "%s\n", answer->err.message);
        return;
    }
    if (ask->job != 0 && ask->job != answer->job)
        box_break(box, "one key made two jobs", answer->job);
    for (size_t i = 0; i < box->n_asks; i++)
        if (&box->asks[i] != ask &&
            (box->asks[i].job == answer->job || is_given_again(box, &box->asks[i], answer->job)))
            box_break(box, "two requests were acknowledged with one id", answer->job);
    ask->job = answer->job;
}

static bool is_array(const struct ask *ask)
{
    uint64_t kind = store_key_hash(0, ask->key);
    return kind % 19 == 0 || (ask->box->has_behind && kind % 9 == 0);
}

/* Its elements may be committed behind others. */
static void make_stretch(const struct box *box, struct job_ask *ask, uint64_t kind)
{
    free(ask->array);
    free(take_ptr(ask->gpu_ids));
    ask->array = kind / 100 % 3 == 0 ? xasprintf("0-%u%%%u", box_elements(box) - 1, BOX_ELEMENTS)
                                     : xasprintf("0-%u", box_elements(box) - 1);
    ask->gpus = kind % 5 == 0 ? 2 : 1;
    ask->gpu_mem = 0;
    ask->nodes = 0;
    ask->begin_ms = 0;
    ask->priority = 2;
    ask->preemptible = ask->park_on_preempt = false;
    ask->early = ask->no_early = false;
    ask->requeue_on_node_lost = kind % 4 == 0; // their commands take long
}

static char *make_after(const struct ask *ask, uint64_t kind)
{
    static const char *const conditions[] = { "any", "ok", "fail", "start", "start+1s" };
    const char *first = conditions[kind % 5], *second = conditions[kind / 5 % 5];
    if (ask->is_paired)
        return xasprintf("%" PRIu64 ":%s", ask->after[0], after_kind_name(AFTER_CORR));
    if (ask->after[1] == 0 || ask->after[1] == ask->after[0])
        return xasprintf("%" PRIu64 ":%s", ask->after[0], first);
    return xasprintf("%" PRIu64 ":%s%c%" PRIu64 ":%s", ask->after[0], first, kind / 25 % 2 == 0 ? ',' : '?',
        ask->after[1], second);
}

/* Its command is over soon as a rule, as is learnt of it, and not always: then it must be parked in turn. */
static bool is_quick(uint64_t kind)
{
    return kind % 10 == 1;
}

/* Where the scheduler parks by its own rule, most jobs are such as it may park, or park for. */
static void make_plain(struct job_ask *ask, uint32_t uid, uint64_t kind)
{
    bool is_any = ask->nodes != 0 || ask->gpu_mem != 0 || ask->gpu_ids != NULL;
    ask->time_limit_ms = uid == NODE_LONG_UID || is_quick(kind)
                             ? LONG_LIMIT_MS
                             : SHORT_LIMIT_MS; // without one, nobody is parked for it
    ask->priority = 0;
    if (is_any && kind % 4 == 0)
        return;
    ask->nodes = 0;
    ask->gpu_mem = 0;
    free(take_ptr(ask->gpu_ids));
    ask->gpus = kind % 7 == 0 ? 2 : 1;
    ask->preemptible = ask->park_on_preempt = false;
}

static struct job_spec *make_spec(const struct ask *ask)
{
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    uint64_t kind = store_key_hash(0, ask->key);
    if (ask->box->are_plain) { // one that refuses to be parked keeps others of its kind from it
        _cleanup_free_ char *command = is_quick(kind) ? xasprintf("quick%" PRIu64, kind / 5 % QUICK_COMMANDS)
                                                      : xasprintf("train%" PRIu64, kind % PLAIN_COMMANDS);
        strings_add(&spec->command, command);
    } else {
        strings_add(&spec->command, kind % 31 < 15 ? "true" : "train");
    }
    spec->cwd = xstrdup("/");
    spec->submit_key = xstrdup(ask->key);
    spec->ask.gpus = (uint32_t)(kind % 4);
    spec->ask.priority = (int32_t)(kind / 7 % 3);
    spec->hold = kind % 17 == 0;
    spec->ask.preemptible = kind % 5 == 0;
    spec->ask.idle_ok = spec->ask.gpus > 0 && kind % 23 == 0;
    if (spec->ask.gpus > 0 && !spec->ask.idle_ok && kind % 3 == 0)
        spec->ask.idle_timeout_ms = 1000;
    spec->ask.requeue_on_node_lost = kind % 9 == 0;
    spec->ask.retry = kind % 6 == 0 ? 2 : 0;
    if (spec->ask.retry > 0 && kind % 4 == 0)
        spec->ask.retry_on = xstrdup("1-3");
    spec->ask.park_on_preempt = spec->ask.preemptible && kind % 2 == 0;
    if (kind % 8 == 1) {
        spec->ask.time_limit_ms = 100;
        spec->ask.park_on_timeout = true;
    }
    spec->ask.array = is_array(ask) ? xasprintf("0-4%%%u", BOX_ELEMENTS) : NULL;
    spec->ask.begin_ms = kind % 10 == 3 ? ask->made_ms + (int64_t)(kind / 100 % 4000) : 0;
    spec->ask.deadline_ms = kind % 14 == 3 ? ask->made_ms + 5000 + (int64_t)(kind / 1000 % 20000) : 0;
    if (ask->after[0] != 0) {
        spec->ask.after = make_after(ask, kind / 3);
        spec->ask.cancel_if_never = true;
    } else if (spec->ask.array == NULL && kind % 25 == 2) {
        spec->name = xstrdup(BOX_SINGLETON);
        spec->ask.after = xstrdup("singleton");
    }
    spec->ask.no_park = kind % 29 == 3 && !spec->ask.park_on_preempt && !spec->ask.park_on_timeout;
    if (kind % 11 == 0) {
        spec->ask.gpus = 2;
        spec->ask.gpu_ids = xstrdup("3,1");
    } else if (spec->ask.gpus > 0 && kind % 13 == 0) {
        spec->ask.gpu_mem = 8ULL << 30;
    } else if (kind % 4 == 1 && !spec->ask.no_park) {
        spec->ask.park_anywhere = true;
    } else if (kind % 7 < 2 && ask->box->n_places > 2) {
        spec->ask.nodes = 2; // of three: one may be lost for ever
        spec->ask.gpus = spec->ask.nodes * (uint32_t)(kind / 11 % 3);
        if (spec->ask.gpus == 0) {
            spec->ask.idle_ok = false;
            spec->ask.idle_timeout_ms = 0;
        }
    }
    spec->ask.early = spec->ask.gpus > 0 && kind % 5 < 2;
    spec->ask.no_early = !spec->ask.early && kind % 5 == 2;
    if (ask->box->has_behind && is_array(ask))
        make_stretch(ask->box, &spec->ask, kind);
    if (ask->box->are_plain)
        make_plain(&spec->ask, ask->who->uid, kind);
    if (spec->ask.nodes == 0 && kind % 12 < 2)
        spec->ask.partition = xstrdup(kind % 12 == 0 ? BOX_PARTITION : BOX_PARTITION ",all");
    return spec;
}

/* A client without an answer asks again with its key, as the command line does. */
static void ask_again(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    if (ask->job != 0 || ask->undone != 0)
        return;
    if (box->core != NULL) {
        /* A job that is over for long is looked up before, as the API does. */
        struct core_fact items[2];
        struct core_facts facts = { .items = items };
        for (size_t i = 0; i < 2; i++)
            if (ask->after[i] != 0 && core_job(box->core, ask->after[i]) == NULL)
                items[facts.count++] = box_fact(box, ask->after[i]);
        core_forget(box->core, ask);
        box->tally.counts[TALLY_SUBMITS_AGAIN] += ask->is_asked;
        ask->is_waiting = ask->is_asked = true;
        ask->is_sizeable = box_has_met_all(box);
        core_submit(
            box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, make_spec(ask), &facts, ask);
        box_turn(box);
    }
    world_later(&box->world, world_between(&box->world, 50, 300), ask_again, box, 0, ask, NULL);
}

static void cancel(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    if (ask->job == 0 || box->core == NULL)
        return;
    const struct identity *other = ask->who == &users[0] ? &users[1] : &users[0]; // it is refused
    core_cancel(box->core, box->world.now_ms, world_wall_ms(&box->world), other, ask->job, 0, NULL);
    if (!world_one_in(&box->world, 4)) {
        ask->is_cancelled = true;
        core_cancel(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, ask->job, 0, NULL);
    }
    box_turn(box);
}

/* As the API does: of the request as it is now, one thing is replaced. It may be refused. */
static void edit(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    const struct job *job = box->core != NULL ? core_job(box->core, ask->job) : NULL;
    if (job == NULL || job->state == JOB_DONE)
        return;
    struct job_ask changed;
    job_ask_copy(&changed, job->ask);
    switch (world_random(&box->world) % 7) {
    case 0: changed.gpus = (uint32_t)(world_random(&box->world) % 4); break;
    case 1: changed.priority = (int32_t)(world_random(&box->world) % (box->are_plain ? 1 : 3)); break;
    case 2: changed.begin_ms = world_true_ms(&box->world) + world_between(&box->world, 0, 2000); break;
    case 3: changed.time_limit_ms = world_between(&box->world, 50, 2000); break;
    case 4: changed.preemptible = !changed.preemptible; break;
    case 5:
        free(changed.partition);
        changed.partition = xstrdup(world_one_in(&box->world, 2) ? BOX_PARTITION : "all");
        break;
    default: changed.deadline_ms = 0; break;
    }
    core_edit(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, ask->job, &changed, NULL,
        NULL, NULL);
    job_ask_clear(&changed);
    box_turn(box);
}

/* Does something to what runs; of an array, to its elements. */
static void control(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    int64_t now = box->world.now_ms;
    if (ask->job == 0 || box->core == NULL)
        return;
    int64_t for_ms = world_one_in(&box->world, 3) ? 1000 : 0;
    switch (world_random(&box->world) % 8) {
    case 0:
        core_requeue(box->core, now, world_wall_ms(&box->world), ask->who, ask->job, 0, false, NULL);
        break;
    case 1: core_signal(box->core, now, world_wall_ms(&box->world), ask->who, ask->job, 10, 0, NULL); break;
    case 2: core_unpark(box->core, now, world_wall_ms(&box->world), ask->who, ask->job, NULL); break;
    case 3:
    case 4:
    case 5: core_park(box->core, now, world_wall_ms(&box->world), ask->who, ask->job, for_ms, NULL); break;
    default: core_suspend(box->core, now, world_wall_ms(&box->world), ask->who, ask->job, false, NULL); break;
    }
    box_turn(box);
}

static void release(void *arg, uint64_t number, void *object);

/* As the API tells of an end: when it is durable. After a crash it may be no end any more. */
static void hear_of_end(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    const struct core_entry *entry = box->core != NULL ? core_find(box->core, ask->job) : NULL;
    bool is_open = entry != NULL && entry->job->state != JOB_DONE;
    if (is_open)
        release(box, 0, ask);
    else if (box->core == NULL || (entry != NULL && entry->changed_in > box->core->durable_batch))
        world_later(&box->world, 5, hear_of_end, box, 0, ask, NULL);
    else
        ask->is_over = true;
}

/* Holds what waits, and lets go again until nothing is held, suspended or parked. */
static void release(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    if (ask->undone != 0)
        return;
    if (box->core != NULL && ask->job != 0) {
        bool waits = false;
        for (uint32_t index = 0; index < 5; index++) {
            uint64_t element = core_element(
                box->core, box->world.now_ms, world_wall_ms(&box->world), ask->job, index, false, &waits);
            if (element != 0)
                core_hold(
                    box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, element, true, NULL);
        }
        core_hold(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, ask->job, true, NULL);
        core_suspend(
            box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, ask->job, true, NULL);
        core_unpark(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, ask->job, NULL);
        box_turn(box);
        const struct job *job = core_job(box->core, ask->job);
        if (job == NULL || job->state == JOB_DONE) {
            hear_of_end(box, 0, object);
            return;
        }
    }
    world_later(&box->world, world_between(&box->world, 200, 2000), release, box, 0, object, NULL);
}

/* One behind another is asked back first, as the API does, and held a little later. */
static void hold(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    bool waits = false;
    if (ask->job == 0 || box->core == NULL)
        return;
    uint64_t element =
        core_element(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->job, 3, true, &waits);
    if (core_take_back(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who, element))
        world_later(&box->world, 20, hold, box, 0, ask, NULL);
    core_hold(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->who,
        element != 0 ? element : ask->job, false, NULL);
    box_turn(box);
}

/* A job that the store knows, or 0. */
static uint64_t one_of(struct box *box)
{
    return box->asks[world_random(&box->world) % box->n_asks].job;
}

/* An array waits for the last one before it. */
static void pair(struct box *box, struct ask *ask)
{
    for (size_t i = 0; is_array(ask) && i < box->n_asks; i++)
        if (&box->asks[i] != ask && box->asks[i].job != 0 && is_array(&box->asks[i])) {
            ask->after[0] = box->asks[i].job;
            ask->after[1] = 0;
            ask->is_paired = true;
        }
}

static void on_client(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (!box->is_storm || box->n_asks == ASKS_MAX)
        return;
    struct ask *ask = &box->asks[box->n_asks++];
    *ask = (struct ask){ .box = box, .made_ms = world_true_ms(&box->world) };
    ask->who = &users[world_one_in(&box->world, 2) ? 0 : world_between(&box->world, 1, 2)];
    (void)snprintf(ask->key, sizeof(ask->key), "key-%zu", box->n_asks);
    if (world_one_in(&box->world, 6))
        ask->after[0] = one_of(box);
    if (world_one_in(&box->world, 3))
        ask->after[1] = one_of(box);
    if (world_one_in(&box->world, 2))
        pair(box, ask);
    ask_again(box, 0, ask);
    if (world_one_in(&box->world, 6))
        world_later(&box->world, world_between(&box->world, 0, 40), hold, box, 0, ask, NULL);
    world_later(&box->world, world_between(&box->world, 0, 2000), release, box, 0, ask, NULL);
    if (world_one_in(&box->world, 3))
        world_later(&box->world, world_between(&box->world, 0, 600), control, box, 0, ask, NULL);
    if (world_one_in(&box->world, 4))
        world_later(&box->world, world_between(&box->world, 0, 1000), edit, box, 0, ask, NULL);
    if (world_one_in(&box->world, 3))
        world_later(&box->world, world_between(&box->world, 0, 40), cancel, box, 0, ask, NULL);
    world_later(&box->world, world_between(&box->world, 1, 800), on_client, box, 0, NULL, NULL);
}

static bool is_in_store(const struct box *box, uint64_t job)
{
    for (size_t i = 0; i < box->n_events; i++)
        if (box->events[i].event.type == EVENT_SUBMITTED && box->events[i].event.job == job)
            return true;
    return false;
}

/* Their own words are as lost as the jobs are: what was held or cancelled since is not. */
void box_restore_clients(struct box *box)
{
    for (size_t i = 0; i < box->n_asks; i++) {
        struct ask *ask = &box->asks[i];
        for (size_t k = 0; k < 2; k++)
            if (ask->job == 0 && ask->after[k] != 0 && !is_in_store(box, ask->after[k]))
                ask->after[k] = 0;
        if (ask->job == 0)
            continue;
        if (!is_in_store(box, ask->job))
            ask->undone = ask->job, ask->job = 0;
        else if (ask->is_over)
            world_later(&box->world, world_between(&box->world, 200, 2000), release, box, 0, ask, NULL);
        ask->is_over = false;
    }
}

void box_open_clients(struct box *box)
{
    for (size_t i = 0; i < CLIENTS; i++)
        world_later(&box->world, world_between(&box->world, 0, 500), on_client, box, 0, NULL, NULL);
}
