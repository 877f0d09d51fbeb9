/* SPDX-License-Identifier: MIT */
/*
 * The rules, implemented again: a node never holds more parked GPUs than its room; jobs that refuse and jobs
 * of several nodes are never parked; and a parked job returns to its node, or to its GPUs, if the case says
 * so.
 */
#include "lab/sim/check_park.h"

#include <errno.h>

#include "base/memory.h"
#include "lab/sim/check_bound.h"
#include "lab/sim/check_spec.h"

#define QUANTUM_MS 5000 // of jobs that mostly run for less than a minute

/* Of a job that is parked: its node, plus 1, and its GPUs as bits. */
struct park_books {
    uint32_t node;
    uint64_t gpus;
    int64_t milli;
};

void park_init(struct world *world)
{
    const int64_t *settings = world->of->settings;
    struct parking_options options = { .is_on = settings[SET_PARK] != CHECK_PARK_NONE,
        .where = settings[SET_PARK] == CHECK_PARK_GPU    ? PARKING_GPU
                 : settings[SET_PARK] == CHECK_PARK_NODE ? PARKING_NODE
                                                         : PARKING_ANY,
        .room = (double)settings[SET_PARK_ROOM] / SHARE_WHOLE,
        .save_ms = 1000,
        .load_ms = 1000 };
    if (options.is_on) {
        parking_set_cost(&options, &world->settings);
        world->settings.quantum_ms = QUANTUM_MS;
        options.is_auto = settings[SET_PARK] == CHECK_PARK_AUTO;
    }
    parking_init(&world->parking, &options, world->of->n_nodes, world->of->n_jobs);
    world->parked = xcalloc(world->of->n_jobs + 1, sizeof(*world->parked));
    for (size_t i = 0; options.is_on && i < world->of->n_jobs; i++)
        world->parking.refuses[i] = world->of->jobs[i][JOB_REFUSES] != 0;
}

void park_clear(struct world *world)
{
    parking_clear(&world->parking);
    free(world->parked);
}

/* Elements of arrays have no place in the model. */
bool park_may(void *arg, uint64_t id)
{
    struct world *world = arg;
    const struct case_attempt *attempt = world_attempt(world, id);
    if (attempt == NULL || world->of->jobs[attempt->job][JOB_ELEMENTS] > 0)
        return false;
    if (world->spoiler != NULL && world->spoiler->allows != NULL &&
        world->spoiler->allows(world->spoiler->arg))
        return true;
    return parking_allows(
        &world->parking, sched_cluster(world->sched), (uint32_t)attempt->job, &attempt->allocation);
}

/* Thousandths of a GPU that its contents take. */
static int64_t milli_of(const int64_t *job)
{
    int64_t memory = (job[JOB_GPU_MEM] * SHARE_WHOLE + LEDGER_GPU_MEM - 1) / LEDGER_GPU_MEM;
    return job[JOB_GPUS] * (job[JOB_SHARE] > 0        ? job[JOB_SHARE]
                               : job[JOB_GPU_MEM] > 0 ? memory
                                                      : (int64_t)SHARE_WHOLE);
}

static void fail(struct world *world, size_t job, const char *text)
{
    if (world->error.code == 0)
        (void)error_set(&world->error, -EPROTO, "job %lld %s", (long long)world->of->jobs[job][JOB_ID], text);
}

static void check_room(struct world *world, uint32_t node)
{
    int64_t held = 0, room = world->of->settings[SET_PARK_ROOM] * world->of->nodes[node][NODE_GPUS];
    for (size_t i = 0; i < world->of->n_jobs; i++)
        held += world->parked[i].node == node + 1 ? world->parked[i].milli : 0;
    if (held > room && world->error.code == 0)
        (void)error_set(&world->error, -EPROTO,
            "node %u holds %lld thousandths of parked GPUs; its room is %lld", node, (long long)held,
            (long long)room);
}

/* Into both books. Returns the additional work that this costs, ms. */
static int64_t enter(struct world *world, size_t job, const struct allocation *allocation)
{
    struct park_books *books = &world->parked[job];
    if (world->of->jobs[job][JOB_REFUSES] != 0)
        fail(world, job, "is parked although it cannot be");
    if (allocation->n_nodes != 1)
        fail(world, job, "is parked although it has several nodes");
    if (books->node != 0)
        fail(world, job, "is parked twice");
    *books =
        (struct park_books){ .node = allocation->nodes[0].node + 1, .milli = milli_of(world->of->jobs[job]) };
    for (size_t i = 0; i < allocation->n_gpus; i++)
        books->gpus |= 1ULL << allocation->gpus[i].gpu;
    check_room(world, allocation->nodes[0].node);
    return parking_add(
        &world->parking, sched_cluster(world->sched), (uint32_t)job, allocation, world->now_ms);
}

int64_t park_take_off(struct world *world, struct case_attempt *attempt)
{
    size_t number = attempt->job;
    struct case_state *state = &world->jobs[number];
    state->work_ms += enter(world, number, &attempt->allocation) + attempt->start_ms - world->now_ms;
    world_drop_attempt(world, attempt);
    state->state = CASE_WAITS;
    return world->of->jobs[number][JOB_RUN] - state->work_ms;
}

void park_now(struct world *world, struct case_attempt *attempt)
{
    size_t number = attempt->job;
    int64_t done_ms = park_take_off(world, attempt);
    sched_stopped(world->sched, world->now_ms, (uint64_t)world->of->jobs[number][JOB_ID], done_ms);
    spec_submit_again(world, number);
}

void park_return(struct world *world, size_t job, const struct allocation *allocation)
{
    const struct park_books *books = &world->parked[job];
    int64_t where = world->of->settings[SET_PARK];
    if (books->node == 0)
        return;
    for (size_t i = 0; i < allocation->n_nodes; i++)
        if (where >= CHECK_PARK_NODE && allocation->nodes[i].node + 1 != books->node)
            fail(world, job, "returns to another node than it left");
    for (size_t i = 0; i < allocation->n_gpus; i++)
        if (where == CHECK_PARK_GPU && (books->gpus >> allocation->gpus[i].gpu & 1) == 0)
            fail(world, job, "returns to other GPUs than it left");
    park_forget(world, job);
}

void park_forget(struct world *world, size_t job)
{
    world->parked[job] = (struct park_books){ 0 };
    if (world->parking.options.is_on)
        parking_remove(&world->parking, (uint32_t)job);
}

/* To the scheduler it is a new job, so it forgets where this one was. */
static void begin_again(struct world *world, size_t job)
{
    struct case_spec spec;
    spec_make(world, job, &spec);
    spec.given.n_after = 0; // it has run
    sched_withdraw(world->sched, world->now_ms, spec.given.id);
    sched_submit(world->sched, world->now_ms, &spec.given);
    spec_clear(&spec);
}

void park_lose(struct world *world, uint32_t node)
{
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        if (world->parked[i].node != node + 1)
            continue;
        park_forget(world, i);
        world->jobs[i].work_ms = world->of->jobs[i][JOB_RUN];
        bound_forget(world, i);
        if (world->of->settings[SET_PARK] == CHECK_PARK_AUTO)
            begin_again(world, i);
        else
            spec_submit_again(world, i);
    }
}
