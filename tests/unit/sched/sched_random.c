/* SPDX-License-Identifier: MIT */
/*
 * Random days of a small cluster through the real scheduler, against a second ledger kept here: no GPU is
 * allocated twice, no job starts that may not, no GPU is lost, and after each pass no job waits that would
 * fit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"
#include "unit_test.h"

#define SEEDS         90U
#define STEPS         350U
#define JOBS          4096U
#define NODES         6U
#define GPUS          8U // one more may be added
#define RUNS_LIMIT    3U // of user 1
#define GPUS_LIMIT    6U // of user 2
#define FIRST_ELEMENT 2000U

enum state { NONE, WAITING, RUNNING, OVER };

struct job {
    struct sched_job_spec spec;
    enum state state;
    struct allocation allocation;
    struct ask_after after[2]; // not settled yet
    size_t n_after;
    uint32_t hold;
    bool is_never, is_told; // told to give way
    int64_t begin_ms, backoff_ms, started_ms, run_ms;
    uint32_t left, open; // of an array
    uint64_t array;
};

struct world {
    struct sched *sched;
    uint64_t random;
    unsigned seed;
    int64_t now_ms;
    struct job jobs[JOBS];
    uint64_t last_job, last_element;
    size_t n_starts;
    uint64_t reservations[8];
    size_t n_reservations;
    uint64_t last_reservation;
};

/* --- chance --- */

static uint32_t chance(struct world *world, uint32_t below)
{
    world->random = world->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(world->random >> 33) % below;
}

static char node_0[] = "n0", node_1[] = "n1";
static struct gpu_pick picks_one[] = { { NULL, 1 } }, picks_two[] = { { NULL, 0 }, { NULL, 1 } },
                       picks_named[] = { { node_1, 2 } }, picks_wide[] = { { node_0, 0 }, { node_1, 0 } };
static uint32_t allowed[] = { 0, 2, 3 };
static char one_model[] = "A100", two_models[] = "H100|B200";

static struct sched_request request_of_chance(struct world *world)
{
    const uint32_t few = 1 + chance(world, 2), many = 1 + chance(world, 4);
    struct sched_request rows[] = {
        { .gpus = 1, .share = 100 + 150 * chance(world, 5) },
        { .gpus = few, .gpu_mem = (uint64_t)(2 + chance(world, 15)) << 30 },
        { .gpus = 1, .picks = picks_one, .n_picks = 1 },
        { .gpus = 2, .picks = picks_two, .n_picks = 2 },
        { .gpus = 1, .picks = picks_named, .n_picks = 1 },
        { .gpus = 2, .picks = picks_wide, .n_picks = 2 },
        { .gpus = many, .model = chance(world, 2) == 0 ? one_model : two_models },
        { .gpus = 6 + chance(world, 8) },
        { .gpus = 4, .nodes = 2, .gpus_per_node = 2 },
        { .gpus = few, .allow = allowed, .n_allow = 3 },
        { .gpus = many },
        { .gpus = 0, .cpu_milli = 1000 * (1 + chance(world, 16)) },
    };
    struct sched_request request = rows[chance(world, sizeof(rows) / sizeof(rows[0]))];
    if (request.gpus > 0 && chance(world, 3) == 0)
        request.cpu_milli = 1000 * chance(world, 12);
    if (chance(world, 3) == 0)
        request.memory = (uint64_t)chance(world, 40) << 30;
    return request;
}

static struct class_key key_of_chance(struct world *world)
{
    int64_t run_ms = 1000 * (1 + (int64_t)chance(world, 6) * chance(world, 200));
    return (struct class_key){
        .uid = 1 + chance(world, 4),
        .gid = 1 + chance(world, 2),
        .priority = chance(world, 6) == 0 ? (int32_t)chance(world, 3) : 0,
        .is_preemptible = chance(world, 6) == 0,
        .limit_ms = chance(world, 3) == 0 ? run_ms + 1000 * chance(world, 100) : 0,
        .estimate_ms = chance(world, 2) == 0 ? run_ms : 0,
        .command_hash = chance(world, 3),
        .request = request_of_chance(world),
    };
}

/* --- the ledger --- */

static bool is_blocked(const struct world *world, const struct job *job)
{
    return job->hold != 0 || job->is_never || job->n_after > 0 || job->begin_ms > world->now_ms ||
           job->backoff_ms > world->now_ms;
}

static bool is_at_element_limit(const struct job *job)
{
    return job->spec.is_array &&
           (job->left == 0 || (job->spec.element_limit > 0 && job->open >= job->spec.element_limit));
}

static uint64_t on_start(void *arg, uint64_t id, const struct allocation *allocation)
{
    struct world *world = arg;
    struct job *job = &world->jobs[id], *run = job;
    assert_int_equal(job->state, WAITING);
    assert_false(is_blocked(world, job));
    if (job->spec.is_array) {
        assert_false(is_at_element_limit(job));
        job->left--;
        job->open++;
        id = ++world->last_element;
        run = &world->jobs[id];
        *run = (struct job){ .spec = job->spec, .array = job->spec.id };
        run->spec.id = id;
        run->spec.is_array = false;
    }
    allocation_copy(&run->allocation, allocation);
    run->state = RUNNING;
    run->is_told = false;
    run->started_ms = world->now_ms;
    bool is_as_expected = run->spec.key.estimate_ms > 0 && chance(world, 3) > 0;
    run->run_ms = is_as_expected ? run->spec.key.estimate_ms : 1000 * (1 + chance(world, 400));
    world->n_starts++;
    return id;
}

static void on_preempt(void *arg, uint64_t id, const char *why)
{
    struct world *world = arg;
    assert_non_null(why);
    assert_int_equal(world->jobs[id].state, RUNNING);
    bool is_any_movable = sched_settings(world->sched)->policy->preempting != PREEMPT_NONE;
    assert_true(is_any_movable || world->jobs[id].spec.key.is_preemptible);
    assert_false(world->jobs[id].is_told);
    world->jobs[id].is_told = true;
}

static void on_unreserve(void *arg, uint64_t id)
{
    struct world *world = arg;
    for (size_t i = 0; i < world->n_reservations; i++)
        if (world->reservations[i] == id)
            world->reservations[i] = world->reservations[--world->n_reservations];
}

struct held {
    uint32_t whole, share;
    uint64_t memory;
};

static void nothing_is_given_twice(const struct world *world)
{
    const struct cluster *cluster = sched_cluster(world->sched);
    struct held gpus[NODES][GPUS + 1] = { 0 };
    uint64_t cpu[NODES] = { 0 }, memory[NODES] = { 0 };
    uint32_t jobs[5] = { 0 }, milli[5] = { 0 };
    for (uint64_t id = 1; id <= world->last_element; id++) {
        const struct job *job = &world->jobs[id];
        if (job->state != RUNNING)
            continue;
        const struct allocation *held = &job->allocation;
        assert_int_equal(held->n_gpus, job->spec.key.request.gpus);
        for (size_t i = 0; i < held->n_gpus; i++) {
            struct held *gpu = &gpus[held->gpus[i].node][held->gpus[i].gpu];
            gpu->whole += held->gpus[i].slot == 0;
            gpu->share += held->gpus[i].slot == 0 ? SHARE_WHOLE : held->gpus[i].share;
            gpu->memory += held->gpus[i].memory;
            assert_true(gpu->whole <= 1 && gpu->share <= SHARE_WHOLE);
            assert_true(
                gpu->memory <= cluster->nodes[held->gpus[i].node].gpus[held->gpus[i].gpu].memory_bytes);
        }
        for (size_t i = 0; i < held->n_nodes; i++) {
            cpu[held->nodes[i].node] += held->nodes[i].cpu_milli;
            memory[held->nodes[i].node] += held->nodes[i].memory;
        }
        jobs[job->spec.key.uid]++;
        milli[job->spec.key.uid] += job->spec.key.request.share == 0 && job->spec.key.request.gpu_mem == 0
                                        ? job->spec.key.request.gpus * SHARE_WHOLE
                                        : job->spec.key.request.share;
    }
    for (size_t n = 0; n < cluster->n_nodes; n++) {
        assert_true(cpu[n] <= cluster->nodes[n].cpu_milli && memory[n] <= cluster->nodes[n].memory);
        assert_int_equal(cpu[n], cluster->nodes[n].cpu_booked);
        assert_int_equal(memory[n], cluster->nodes[n].memory_booked);
        for (size_t g = 0; g < cluster->nodes[n].n_gpus; g++) {
            assert_int_equal(gpus[n][g].whole, cluster->nodes[n].gpus[g].is_exclusive);
            assert_int_equal(gpus[n][g].memory, cluster->nodes[n].gpus[g].memory_booked);
        }
    }
    assert_true(jobs[1] <= RUNS_LIMIT && milli[2] <= GPUS_LIMIT * SHARE_WHOLE);
}

/* Every node is tried with nothing but the rules of one node. */
static bool would_fit(const struct world *world, const struct queue_class *class)
{
    const struct sched *sched = world->sched;
    const struct cluster *cluster = &sched->cluster;
    const struct sched_request *request = &class->key.request;
    uint64_t usable[16], work = 0;
    struct allocation found = { 0 };
    struct fit fit;
    sched_fit_of(sched, class, usable, 16, &fit);
    fit.counts_starts = true;
    bool is_single = request->nodes <= 1 && request->n_picks == 0;
    for (size_t n = 0; is_single && n < cluster->n_nodes; n++)
        if (fit_host(&cluster->nodes[n], request, &fit) &&
            fit_count(cluster, &cluster->nodes[n], request, &fit, request->gpus) >= request->gpus)
            return true;
    bool fits =
        !is_single && placement_choose(&placement_first_fit, NULL, cluster, request, &fit, &found, &work);
    allocation_clear(&found);
    return fits;
}

static void nobody_waits_who_would_fit(const struct world *world)
{
    for (uint64_t id = 1; id <= world->last_element; id++) {
        const struct job *job = &world->jobs[id];
        const struct sched_job *known = sched_find(world->sched, id);
        if (job->state == WAITING && !is_blocked(world, job) && !is_at_element_limit(job)) {
            assert_non_null(known);
            assert_non_null(known->entry.class);
            const struct queue_class *class = known->class;
            bool is_limited =
                sched_limiting(world->sched, &class->key, class->account, class->group, NULL, 0) != NULL;
            assert_true(!class->is_parked || is_limited);
            if (!is_limited && would_fit(world, class))
                fail_msg("seed %u: job %lu waits though it would fit", world->seed, (unsigned long)id);
        } else if (job->state == WAITING) {
            assert_non_null(known);
            assert_null(known->entry.class);
        } else if (job->state == RUNNING) {
            assert_non_null(known);
            assert_non_null(known->run);
        } else {
            assert_null(known);
        }
    }
}

static void pass(struct world *world)
{
    struct error err = { 0 };
    if (!sched_is_dirty(world->sched) && sched_next_ms(world->sched) > world->now_ms)
        return; // as the controller does it
    sched_pass(world->sched, world->now_ms);
    assert_false(sched_is_dirty(world->sched));
    assert_true(sched_next_ms(world->sched) > world->now_ms);
    if (sched_invariant(world->sched, &err) < 0)
        fail_msg("seed %u: %s", world->seed, err.message);
    nothing_is_given_twice(world);
    nobody_waits_who_would_fit(world);
}

/* --- what happens --- */

static struct job *job_of_chance(struct world *world, enum state state)
{
    uint64_t last = world->last_element, from = chance(world, (uint32_t)last + 1);
    for (uint64_t i = 0; i < last; i++) {
        struct job *job = &world->jobs[1 + (from + i) % last];
        if (job->state == state)
            return job;
    }
    return NULL;
}

static void settle(struct world *world, uint64_t id, bool is_ok)
{
    for (uint64_t i = 1; i <= world->last_job; i++) {
        struct job *job = &world->jobs[i];
        for (size_t k = 0; job->state == WAITING && k < job->n_after; k++) {
            if (job->after[k].job != id)
                continue;
            job->is_never |= job->after[k].kind != AFTER_ANY && (job->after[k].kind == AFTER_OK) != is_ok;
            if (job->is_never)
                break;
            job->after[k--] = job->after[--job->n_after];
        }
    }
    sched_resolve_dependents(world->sched, world->now_ms, id, is_ok);
}

static void array_lost_one(struct world *world, uint64_t id, bool is_ok)
{
    struct job *array = &world->jobs[id];
    array->open--;
    if (array->left > 0 || array->open > 0)
        return;
    array->state = OVER;
    settle(world, id, is_ok);
}

static void end_job(struct world *world, struct job *job, bool is_ok)
{
    allocation_clear(&job->allocation);
    job->state = OVER;
    sched_ended(world->sched, world->now_ms, job->spec.id, world->now_ms - job->started_ms);
    settle(world, job->spec.id, is_ok);
    if (job->array != 0)
        array_lost_one(world, job->array, is_ok);
}

static void stop_job(struct world *world, struct job *job, bool has_failed)
{
    allocation_clear(&job->allocation);
    job->state = WAITING;
    sched_stopped(world->sched, world->now_ms, job->spec.id, 0);
    if (!has_failed)
        return;
    job->backoff_ms = world->now_ms + 1 + chance(world, 20000);
    sched_block(world->sched, world->now_ms, job->spec.id, BLOCK_BACKOFF, 0, job->backoff_ms);
}

static void submit(struct world *world)
{
    uint64_t id = world->last_job + 1;
    if (id >= FIRST_ELEMENT)
        return;
    struct job *job = &world->jobs[id];
    *job = (struct job){ .spec = { .id = id, .submit_ms = world->now_ms, .key = key_of_chance(world) } };
    struct sched_job_spec *spec = &job->spec;
    if (cluster_check(sched_cluster(world->sched), &spec->key.request, &(struct error){ 0 }) < 0)
        return;
    world->last_job = id;
    if (chance(world, 8) == 0)
        job->begin_ms = spec->begin_ms = world->now_ms + 1 + chance(world, 100000);
    if (chance(world, 10) == 0)
        job->hold = spec->hold = chance(world, 2) == 0 ? BLOCK_HELD_USER : BLOCK_HELD_ADMIN;
    if (chance(world, 8) == 0) {
        spec->is_array = true;
        job->left = spec->elements = 1 + chance(world, 12);
        spec->element_limit = chance(world, 4);
    }
    for (size_t tries = 0; tries < 2 && chance(world, 5) == 0; tries++) {
        const struct job *named = job_of_chance(world, chance(world, 2) == 0 ? RUNNING : WAITING);
        bool is_known =
            named == NULL || named == job || (job->n_after == 1 && job->after[0].job == named->spec.id);
        if (!is_known)
            job->after[job->n_after++] =
                (struct ask_after){ named->spec.id, (enum after_kind)chance(world, 3) };
    }
    spec->after = job->after;
    spec->n_after = job->n_after;
    sched_submit(world->sched, world->now_ms, spec);
    job->state = WAITING;
}

static void withdraw(struct world *world)
{
    struct job *job = job_of_chance(world, WAITING);
    if (job == NULL)
        return;
    sched_withdraw(world->sched, world->now_ms, job->spec.id);
    job->left = 0;
    if (job->spec.is_array && job->open > 0)
        return;
    job->state = OVER;
    settle(world, job->spec.id, false);
    if (job->array != 0)
        array_lost_one(world, job->array, false);
}

static void edit(struct world *world)
{
    struct job *job = job_of_chance(world, WAITING);
    struct class_key key = key_of_chance(world);
    if (job == NULL || job->array != 0 || job->is_never)
        return;
    if (cluster_check(sched_cluster(world->sched), &key.request, &(struct error){ 0 }) < 0)
        return;
    if (job->spec.is_array)
        key.request = job->spec.key.request; // of the elements that run already
    job->spec.key = key;
    job->spec.elements = job->left;
    job->spec.elements_open = job->open;
    job->spec.hold = job->hold;
    job->spec.after = job->after;
    job->spec.n_after = job->n_after;
    job->spec.begin_ms = job->begin_ms = chance(world, 2) == 0 ? 0 : world->now_ms + chance(world, 50000);
    sched_edit(world->sched, world->now_ms, &job->spec);
}

static void hold_or_release(struct world *world)
{
    struct job *job = job_of_chance(world, WAITING);
    if (job == NULL)
        return;
    uint32_t bit = chance(world, 2) == 0 ? BLOCK_HELD_USER : BLOCK_HELD_ADMIN;
    uint32_t set = chance(world, 3) == 0 ? bit : 0, clear = set == 0 ? bit : 0;
    job->hold = (job->hold & ~clear) | set;
    sched_block(world->sched, world->now_ms, job->spec.id, set, clear, TIME_NEVER);
}

static void change_a_node(struct world *world)
{
    struct cluster *cluster = sched_cluster(world->sched);
    struct cluster_node *node = &cluster->nodes[chance(world, (uint32_t)cluster->n_nodes)];
    struct cluster_gpu *gpu = &node->gpus[chance(world, (uint32_t)node->n_gpus)];
    switch (chance(world, 10)) {
    case 8: gpu->closed = 1U << chance(world, 4); break;
    case 9: gpu->memory_external = chance(world, 3) * (gpu->memory_bytes / 2); break;
    case 6: gpu->is_known = gpu->is_present = false; break;
    case 7: (void)cluster_set_gpu(cluster, node, GPUS + 1, "GPU-new", "B200", 16ULL << 30, true); break;
    case 0: node->is_up = false; break;
    case 1: node->is_drained = true; break;
    case 2: gpu->is_paused = true; break;
    case 3: gpu->is_present = false; break;
    default:
        node->is_up = true;
        node->is_drained = gpu->is_paused = false;
        gpu->is_known = gpu->is_present = true;
        gpu->closed = 0;
        gpu->memory_external = 0;
        break;
    }
    cluster_touch(cluster, node);
}

static void reserve_or_not(struct world *world)
{
    uint32_t uid = 1 + chance(world, 4);
    if (world->n_reservations > 0 && chance(world, 2) == 0) {
        assert_int_equal(sched_unreserve(world->sched, world->now_ms, world->reservations[0]), 0);
        on_unreserve(world, world->reservations[0]);
        return;
    }
    if (world->n_reservations == 4)
        return;
    struct sched_request request = { .gpus = 1 + chance(world, 4) };
    char name[] = "r";
    struct sched_reservation wanted = {
        .id = ++world->last_reservation, .name = name, .uids = &uid, .n_uids = 1
    };
    wanted.from_ms = world->now_ms + chance(world, 100000);
    wanted.until_ms = wanted.from_ms + 1 + chance(world, 200000);
    if (sched_reserve(world->sched, world->now_ms, &request, &wanted, &(struct error){ 0 }) == 0)
        world->reservations[world->n_reservations++] = wanted.id;
    free(wanted.gpus);
}

static void let_time_pass(struct world *world)
{
    int64_t next = sched_next_ms(world->sched), to = world->now_ms + 1 + chance(world, 30000);
    world->now_ms = next < to && next > world->now_ms ? next : to;
    for (uint64_t id = 1; id <= world->last_element; id++) {
        struct job *job = &world->jobs[id];
        if (job->state == RUNNING && job->is_told)
            stop_job(world, job, false);
        else if (job->state == RUNNING && job->started_ms + job->run_ms <= world->now_ms)
            end_job(world, job, chance(world, 4) > 0);
    }
}

static void something_happens(struct world *world)
{
    struct job *job;
    uint32_t kind = chance(world, 40);
    if (kind < 14)
        submit(world);
    else if (kind < 28)
        let_time_pass(world);
    else if (kind < 31 && (job = job_of_chance(world, RUNNING)) != NULL)
        end_job(world, job, chance(world, 3) > 0);
    else if (kind == 31 && (job = job_of_chance(world, RUNNING)) != NULL)
        stop_job(world, job, true);
    else if (kind == 32 && (job = job_of_chance(world, RUNNING)) != NULL)
        sched_started(world->sched, world->now_ms, job->spec.id);
    else if (kind == 33)
        withdraw(world);
    else if (kind == 34)
        edit(world);
    else if (kind < 37)
        hold_or_release(world);
    else if (kind == 37)
        change_a_node(world);
    else if (kind == 38)
        reserve_or_not(world);
}

/* --- worlds --- */

static void build(struct world *world)
{
    static const char *const models[] = { "A100", "H100", "RTX 4090" };
    struct cluster *cluster = sched_cluster(world->sched);
    uint32_t n_nodes = 2 + chance(world, NODES - 1);
    for (uint32_t n = 0; n < n_nodes; n++) {
        char name[16], uuid[32];
        (void)snprintf(name, sizeof(name), "n%u", n);
        struct cluster_node *node =
            cluster_set_node(cluster, name, 8000 + 8000 * chance(world, 3), 64ULL << 30);
        uint32_t n_gpus = chance(world, 2) == 0 ? 4 : 1 + chance(world, GPUS);
        for (uint32_t g = 0; g < n_gpus; g++) {
            (void)snprintf(uuid, sizeof(uuid), "GPU-%u-%u", n, g);
            cluster_set_gpu(cluster, node, g, uuid, models[n % 3], 16ULL << 30, true);
        }
        cluster_touch(cluster, node);
    }
}

static struct world *world_new(unsigned seed, const struct policy *policy)
{
    struct world *world = xcalloc(1, sizeof(*world));
    struct sched_settings settings;
    struct sched_callbacks callbacks = {
        .arg = world, .start = on_start, .preempt = on_preempt, .unreserve = on_unreserve
    };
    *world = (struct world){ .seed = seed, .random = seed, .now_ms = 1000000, .last_element = FIRST_ELEMENT };
    sched_settings_init(&settings);
    settings.policy = policy;
    settings.placement = placements[seed % 4];
    settings.reservations = 1 + seed % 4;
    settings.age_cap_ms = 500000;
    settings.unused_ms = 60000;
    settings.node_jobs = seed % 5 == 0 ? 3 : 0;
    settings.node_starts = seed % 3 == 0 ? 1 + seed % 2 : 0;
    world->sched = sched_new(&settings, &callbacks);
    fairshare_account(sched_fairshare(world->sched), 1, ACCOUNT_USER)->limits.jobs = RUNS_LIMIT;
    fairshare_account(sched_fairshare(world->sched), 2, ACCOUNT_USER)->limits.gpu_milli =
        GPUS_LIMIT * SHARE_WHOLE;
    fairshare_account(sched_fairshare(world->sched), 3, ACCOUNT_USER)->limits.gpu_seconds = 3000;
    build(world);
    return world;
}

static void world_free(struct world *world)
{
    for (size_t i = 0; i < JOBS; i++)
        allocation_clear(&world->jobs[i].allocation);
    sched_free(world->sched);
    free(world);
}

static void run_worlds(const char *policy)
{
    size_t n_starts = 0;
    const char *from = getenv("SEED"), *count = getenv("SEEDS");
    unsigned first = from != NULL ? (unsigned)atoi(from) : 1;
    unsigned last = first + (count != NULL ? (unsigned)atoi(count) : from != NULL ? 1 : SEEDS) - 1;
    for (unsigned seed = first; seed <= last; seed++) {
        struct world *world = world_new(seed, policy_find(policy));
        for (size_t i = 0; i < STEPS; i++) {
            something_happens(world);
            pass(world);
        }
        n_starts += world->n_starts;
        world_free(world);
    }
    print_message("%s: %zu starts, seeds %u to %u\n", policy, n_starts, first, last);
}

TEST(under_easy_everything_is_as_the_ledger_says)
{
    run_worlds("easy");
}

TEST(under_the_default_policy_too)
{
    run_worlds("default");
}

TEST(and_when_every_blocked_job_has_a_reservation)
{
    run_worlds("conservative");
}

TEST(when_the_shortest_rest_goes_first)
{
    run_worlds("srtf");
}

TEST(when_who_had_least_goes_first)
{
    run_worlds("las");
}

TEST(and_when_running_jobs_give_way_by_what_is_learnt)
{
    run_worlds("learnt");
}
