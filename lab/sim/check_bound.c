/* SPDX-License-Identifier: MIT */
/*
 * The promise, implemented again: all in all a job is parked for at most BOUND times as long as it has run
 * since it last began from the beginning. A park takes as long as a preemption of the case; jobs that refuse
 * do so each time, and say so only then, unless the case says that this is known. Jobs that start again
 * because their GPUs are due to a parked one do so once, and if it was known that they refuse, and they have
 * no time limit, they had their GPUs for MARGIN times what they were said to need.
 */
#include "lab/sim/check_bound.h"

#include <errno.h>

#include "base/memory.h"
#include "lab/sim/check_park.h"

#define KNOWN  2 // of JOB_REFUSES
#define BOUND  4 // what users are promised (docs/scheduling.md)
#define MARGIN 20

struct bound_books {
    int64_t ran_ms, waited_ms;
    int64_t since_ms; // it is parked since then, plus 1; 0: it is not
    uint32_t node;
    bool is_excused;
    bool has_refused, is_known; // is_known: when it started last, it was known that it refuses
    uint32_t reclaims;          // how often it has started again for parked jobs
};

/* Elements of arrays have their own ids; the scheduler never parks them. */
static void on_park(void *arg, uint64_t id, uint64_t guest)
{
    struct world *world = arg;
    struct case_attempt *attempt = world_attempt(world, id);
    if (attempt == NULL || world->of->jobs[attempt->job][JOB_ELEMENTS] > 0) {
        (void)error_set(&world->error, -EPROTO, "job %llu is to be parked but %s", (unsigned long long)id,
            attempt == NULL ? "is not running" : "is an element of an array");
        return;
    }
    world->is_disturbed = true;
    attempt->is_parking = true;
    attempt->stop_ms = world->now_ms + world->of->settings[SET_GRACE_MS];
    if (world->of->settings[SET_GRACE_MS] == 0 && world->error.code == 0)
        (void)bound_stop(world, attempt);
}

/* As far as is known. */
static bool may_park(void *arg, uint64_t id)
{
    const struct world *world = arg;
    if (world->spoiler != NULL && world->spoiler->allows != NULL &&
        world->spoiler->allows(world->spoiler->arg))
        return true;
    for (size_t i = 0; i < world->of->n_jobs; i++)
        if ((uint64_t)world->of->jobs[i][JOB_ID] == id)
            return world->of->jobs[i][JOB_REFUSES] != KNOWN;
    return true;
}

static bool refuses(const struct world *world, size_t job)
{
    return world->of->jobs[job][JOB_REFUSES] == KNOWN || world->bounds[job].has_refused;
}

static bool may_borrow(void *arg, uint64_t id)
{
    const struct world *world = arg;
    for (size_t i = 0; i < world->of->n_jobs; i++)
        if ((uint64_t)world->of->jobs[i][JOB_ID] == id)
            return refuses(world, i) && (world->bounds[i].reclaims == 0 ||
                                            (world->spoiler != NULL && world->spoiler->borrows_again));
    return false;
}

void bound_init(struct world *world, struct sched_callbacks *callbacks)
{
    world->bounds = xcalloc(world->of->n_jobs + 1, sizeof(*world->bounds));
    if (world->of->settings[SET_PARK] != CHECK_PARK_AUTO)
        return;
    world->settings.parking = PARKING_AUTO;
    world->settings.preempt_grace_ms = world->of->settings[SET_GRACE_MS];
    if (world->spoiler != NULL && world->spoiler->park_bound > 0)
        world->settings.park_bound = world->spoiler->park_bound;
    callbacks->park = on_park;
    callbacks->may_park = may_park;
    callbacks->may_borrow = may_borrow;
    if (world->spoiler != NULL && world->spoiler->park_margin > 0)
        world->settings.park_margin = world->spoiler->park_margin;
}

void bound_clear(struct world *world)
{
    free(world->bounds);
}

bool bound_stop(struct world *world, struct case_attempt *attempt)
{
    size_t job = attempt->job;
    struct bound_books *books = &world->bounds[job];
    uint64_t id = attempt->id;
    if (!attempt->is_parking)
        return false;
    if (world->of->jobs[job][JOB_REFUSES] != 0) {
        attempt->is_parking = false;
        attempt->stop_ms = TIME_NEVER;
        books->has_refused = true;
        sched_park_refused(world->sched, world->now_ms, id);
        return true;
    }
    world->is_disturbed = true;
    books->ran_ms += world->now_ms - attempt->start_ms;
    books->since_ms = world->now_ms + 1;
    books->node = attempt->allocation.nodes[0].node;
    const struct cluster_node *node = &sched_cluster(world->sched)->nodes[books->node];
    /* What came back late for such a reason takes turns with others that did, until it has time to give. */
    bool is_late = books->is_excused && books->waited_ms > (BOUND - 1) * books->ran_ms;
    books->is_excused = is_late || node->is_drained || world->has_reserved;
    for (size_t i = 0; i < node->n_gpus; i++)
        books->is_excused |= node->gpus[i].is_paused;
    int64_t done_ms = park_take_off(world, attempt);
    sched_parked(world->sched, world->now_ms, id, done_ms);
    return true;
}

static void fail(struct world *world, size_t job, const char *text)
{
    if (world->error.code == 0)
        (void)error_set(&world->error, -EPROTO,
            "job %lld, which can neither be parked nor has a time limit, %s",
            (long long)world->of->jobs[job][JOB_ID], text);
}

void bound_reclaimed(struct world *world, const struct case_attempt *attempt)
{
    const int64_t *job = world->of->jobs[attempt->job];
    struct bound_books *books = &world->bounds[attempt->job];
    bool is_plain = world->of->n_events == 0; // nothing was held, reserved, drained or lost
    bool is_bare = job[JOB_LIMIT] == 0 && job[JOB_PREEMPTIBLE] == 0 && job[JOB_ELEMENTS] == 0;
    int64_t told_ms = job[JOB_TOLD] > 0 ? job[JOB_TOLD] : job[JOB_RUN];
    if (is_plain && is_bare && books->reclaims > 0)
        fail(world, attempt->job, "starts again for parked jobs a second time");
    if (is_plain && is_bare && books->is_known && world->now_ms - attempt->start_ms < MARGIN * told_ms)
        fail(world, attempt->job, "starts again although it had its GPUs too briefly");
    books->reclaims++;
}

void bound_return(struct world *world, size_t job)
{
    struct bound_books *books = &world->bounds[job];
    books->is_known = refuses(world, job);
    if (books->since_ms == 0)
        return;
    world->is_disturbed = true;
    books->waited_ms += world->now_ms - (books->since_ms - 1);
    books->since_ms = 0;
}

void bound_forget(struct world *world, size_t job)
{
    struct bound_books *books = &world->bounds[job];
    *books = (struct bound_books){ .has_refused = books->has_refused, .reclaims = books->reclaims };
}

void bound_excuse(struct world *world, uint32_t node)
{
    for (size_t i = 0; i < world->of->n_jobs; i++)
        world->bounds[i].is_excused |=
            world->bounds[i].since_ms != 0 && (node == WORLD_ALL_NODES || world->bounds[i].node == node);
    world->has_reserved |= node == WORLD_ALL_NODES;
}

void bound_check(struct world *world)
{
    for (size_t i = 0; i < world->of->n_jobs && world->error.code == 0; i++) {
        const struct bound_books *books = &world->bounds[i];
        int64_t waited_ms =
            books->waited_ms + (books->since_ms != 0 ? world->now_ms - (books->since_ms - 1) : 0);
        if (waited_ms > BOUND * books->ran_ms && !books->is_excused && !world->jobs[i].is_held)
            (void)error_set(&world->error, -EPROTO,
                "job %lld has been parked for %lld ms, more than %d times the %lld ms that it has run",
                (long long)world->of->jobs[i][JOB_ID], (long long)waited_ms, BOUND, (long long)books->ran_ms);
    }
}
