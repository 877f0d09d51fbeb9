/* SPDX-License-Identifier: MIT */
/* Cases are small, so everything is found by searching arrays. Elements of arrays get their own ids, far
 * above those of jobs. */
#include "lab/sim/check_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "lab/sim/check_bound.h"
#include "lab/sim/check_park.h"
#include "lab/sim/check_spec.h"

#define FIRST_ELEMENT 1000000U
#define STARTS_MAX    10000U // in one instant

/* --- finding --- */

static const int64_t *job_values(const struct world *world, size_t job)
{
    return world->of->jobs[job];
}

static size_t find_job(const struct world *world, int64_t id)
{
    size_t at = 0;
    while (at < world->of->n_jobs && world->of->jobs[at][JOB_ID] != id)
        at++;
    return at;
}

struct case_attempt *world_attempt(const struct world *world, uint64_t id)
{
    for (size_t i = 0; i < world->n_attempts; i++)
        if (world->attempts[i].id == id)
            return &world->attempts[i];
    return NULL;
}

static void fail(struct world *world, const int64_t *job, const char *text)
{
    if (world->error.code == 0)
        (void)error_set(&world->error, -EPROTO, "job %lld starts %s", (long long)job[JOB_ID], text);
}

/* What counts against limits: a share by memory counts as that part of a GPU's memory. */
static int64_t counted_milli(const int64_t *job)
{
    if (job[JOB_SHARE] > 0)
        return job[JOB_GPUS] * job[JOB_SHARE];
    return job[JOB_GPUS] *
           (job[JOB_GPU_MEM] > 0 ? job[JOB_GPU_MEM] / (LEDGER_GPU_MEM / SHARE_WHOLE + 1) : SHARE_WHOLE);
}

bool world_is_held_by(const int64_t *job, const int64_t *other)
{
    return job[JOB_UID] == other[JOB_UID] && job[JOB_PREEMPTIBLE] == other[JOB_PREEMPTIBLE] &&
           job[JOB_PRIORITY] <= 0 && other[JOB_PRIORITY] <= 0 && other[JOB_OWN] > job[JOB_OWN];
}

/* --- dependencies and submission --- */

static bool is_as_wanted(const struct case_state *of, int64_t kind)
{
    return kind == AFTER_ANY || of->is_ok == (kind == AFTER_OK);
}

/* 1: nothing to wait for, 0: it waits, -1: it can never be. */
static int dependency(const struct world *world, const int64_t *job)
{
    size_t on = find_job(world, job[JOB_AFTER]);
    if (job[JOB_AFTER] == 0 || on == world->of->n_jobs)
        return 1;
    const struct case_state *other = &world->jobs[on];
    if (other->state == CASE_NEVER || other->state == CASE_COMES)
        return -1; // not submitted, so it cannot be named
    if (other->state == CASE_OVER)
        return is_as_wanted(other, job[JOB_AFTER_KIND]) ? 1 : -1;
    return 0;
}

static void finish_job(struct world *world, size_t number)
{
    struct case_state *job = &world->jobs[number];
    job->state = CASE_OVER;
    sched_resolve_dependents(
        world->sched, world->now_ms, (uint64_t)job_values(world, number)[JOB_ID], job->is_ok);
}

static void submit(struct world *world, size_t number)
{
    const int64_t *values = job_values(world, number);
    struct case_state *job = &world->jobs[number];
    struct case_spec spec;
    spec_make(world, number, &spec);
    if (world->spoiler != NULL && world->spoiler->change != NULL)
        world->spoiler->change(world->spoiler->arg, &spec.given);
    int waits = dependency(world, values);
    if (waits == 1)
        spec.given.n_after = 0;
    struct error err = { 0 };
    bool is_too_wide = world->settings.user_limits.gpu_milli > 0 &&
                       counted_milli(values) > world->settings.user_limits.gpu_milli;
    bool is_refused = waits < 0 || sched_check(world->sched, &spec.given, &err) < 0;
    if (is_too_wide && !is_refused)
        (void)error_set(&world->error, -EPROTO, "job %lld is accepted although it exceeds its user's limit",
            (long long)values[JOB_ID]);
    if (is_refused) {
        job->state = CASE_NEVER;
    } else {
        job->state = CASE_WAITS;
        job->is_held = spec.given.hold != 0;
        job->is_ok = true;
        job->left = values[JOB_ELEMENTS];
        job->work_ms = values[JOB_RUN];
        sched_submit(world->sched, world->now_ms, &spec.given);
    }
    spec_clear(&spec);
}

/* --- what the scheduler decides --- */

static void check_rules(struct world *world, const int64_t *job, const struct case_state *state)
{
    int64_t jobs = 1, milli = counted_milli(job);
    for (size_t i = 0; i < world->n_attempts; i++) {
        const int64_t *other = job_values(world, world->attempts[i].job);
        if (other[JOB_UID] != job[JOB_UID])
            continue;
        jobs++;
        milli += counted_milli(other);
    }
    if (state->state != CASE_WAITS)
        fail(world, job, "although it is not waiting");
    if (state->is_held)
        fail(world, job, "although it is held");
    if (job[JOB_BEGIN] > world->now_ms)
        fail(world, job, "before its begin time");
    if (dependency(world, job) != 1)
        fail(world, job, "before its dependency has ended");
    if (job[JOB_ELEMENT_LIMIT] > 0 && state->open >= job[JOB_ELEMENT_LIMIT])
        fail(world, job, "more elements than may run at a time");
    if (world->settings.user_limits.jobs > 0 && jobs > world->settings.user_limits.jobs)
        fail(world, job, "beyond its user's limit of running jobs");
    if (world->settings.user_limits.gpu_milli > 0 && milli > world->settings.user_limits.gpu_milli)
        fail(world, job, "beyond its user's limit of GPUs");
}

/* Whose last job has ended gets the head start of a user with nothing running, unless a newcomer waits. */
static bool may_have_head_start(const struct world *world, const int64_t *job)
{
    for (size_t i = 0; i < world->n_attempts; i++)
        if (job_values(world, world->attempts[i].job)[JOB_UID] == job[JOB_UID])
            return false;
    return world->settings.policy->uses_fairshare;
}

/* Whether it precedes the first job. Under policies that do not order by submit time only older jobs
 * certainly do. */
static bool is_ahead(const struct world *world, const int64_t *job)
{
    const int64_t *first = world->of->jobs[find_job(world, (int64_t)world->first)];
    const char *policy = world->settings.policy->name;
    if (world_is_held_by(first, job) || may_have_head_start(world, job))
        return true;
    if (strcmp(policy, "easy") != 0 && strcmp(policy, "conservative") != 0)
        return job[JOB_AT] >= world->promised_at_ms || job[JOB_BEGIN] >= world->promised_at_ms ||
               job[JOB_HOLD_UNTIL] >= world->promised_at_ms || job[JOB_AFTER] > 0 || job[JOB_ELEMENTS] > 0 ||
               world->settings.user_limits.jobs > 0 ||
               world->settings.user_limits.gpu_milli > 0; // a limit that ends brings a newcomer as well
    if (job[JOB_PRIORITY] != first[JOB_PRIORITY])
        return job[JOB_PRIORITY] > first[JOB_PRIORITY];
    if (job[JOB_PREEMPTIBLE] != first[JOB_PREEMPTIBLE])
        return first[JOB_PREEMPTIBLE] != 0;
    return job[JOB_AT] <= first[JOB_AT];
}

/* A preempted element starts again; returns the number of its job. */
static size_t take_returned(struct world *world, uint64_t id)
{
    for (size_t i = 0; i < world->n_returned; i++)
        if (world->returned[i].id == id) {
            size_t number = world->returned[i].job;
            world->returned[i] = world->returned[--world->n_returned];
            return number;
        }
    return world->of->n_jobs;
}

static uint64_t on_start(void *arg, uint64_t id, const struct allocation *allocation)
{
    struct world *world = arg;
    bool is_return = id > FIRST_ELEMENT;
    size_t number = is_return ? take_returned(world, id) : find_job(world, (int64_t)id);
    if (number == world->of->n_jobs) {
        (void)error_set(
            &world->error, -EPROTO, "job %llu starts, which does not exist", (unsigned long long)id);
        return id;
    }
    const int64_t *job = job_values(world, number);
    struct case_state *state = &world->jobs[number];
    struct error err = { 0 };
    if (world->n_starts++ == STARTS_MAX)
        fail(world, job, "and is preempted repeatedly at the same time");
    if (!is_return)
        check_rules(world, job, state);
    if (world->first != 0 && (is_return || is_ahead(world, job)))
        world->is_disturbed = true;
    world->attempts = xreallocarray(world->attempts, world->n_attempts + 1, sizeof(*world->attempts));
    struct case_attempt *attempt = &world->attempts[world->n_attempts++];
    *attempt = (struct case_attempt){ .id = id, .job = number, .is_new = true, .stop_ms = TIME_NEVER };
    attempt->start_ms = world->now_ms;
    attempt->end_ms = world->now_ms + (job[JOB_ELEMENTS] > 0 ? job[JOB_RUN] : state->work_ms);
    allocation_copy(&attempt->allocation, allocation);
    if (world->spoiler != NULL && world->spoiler->spoil != NULL)
        world->spoiler->spoil(world->spoiler->arg, job, &attempt->allocation);
    if (ledger_give(&world->ledger, job, &attempt->allocation, world->now_ms, &err) < 0 &&
        world->error.code == 0)
        (void)error_set(
            &world->error, -EPROTO, "job %llu starts: %.400s", (unsigned long long)id, err.message);
    state->n_started++;
    bound_return(world, number);
    park_return(world, number, &attempt->allocation);
    if (is_return)
        return id;
    if (job[JOB_ELEMENTS] > 0) {
        attempt->id = ++world->last_element;
        state->open++;
        state->left--;
    }
    state->state = state->left > 0 ? CASE_WAITS : CASE_RUNS;
    return attempt->id;
}

void world_drop_attempt(struct world *world, struct case_attempt *attempt)
{
    ledger_take_back(&world->ledger, job_values(world, attempt->job), &attempt->allocation);
    allocation_clear(&attempt->allocation);
    *attempt = world->attempts[--world->n_attempts];
}

static void stop(struct world *world, struct case_attempt *attempt)
{
    size_t number = attempt->job;
    uint64_t id = attempt->id;
    world_drop_attempt(world, attempt);
    if (job_values(world, number)[JOB_ELEMENTS] == 0) {
        world->jobs[number].state = CASE_WAITS;
    } else {
        world->returned = xreallocarray(world->returned, world->n_returned + 1, sizeof(*world->returned));
        world->returned[world->n_returned++] = (struct case_attempt){ .id = id, .job = number };
    }
    world->jobs[number].work_ms = job_values(world, number)[JOB_RUN];
    bound_forget(world, number);
    sched_stopped(world->sched, world->now_ms, id, 0);
    if (world->parking.options.is_on && !world->parking.options.is_auto &&
        job_values(world, number)[JOB_ELEMENTS] == 0)
        spec_submit_again(world, number);
}

static void on_preempt(void *arg, uint64_t id, const char *why)
{
    struct world *world = arg;
    struct case_attempt *attempt = world_attempt(world, id);
    if (attempt == NULL) {
        (void)error_set(
            &world->error, -EPROTO, "job %llu is to be preempted but is not running", (unsigned long long)id);
        return;
    }
    world->is_disturbed = true;
    if (world->parking.options.is_on && !world->parking.options.is_auto) {
        park_now(world, attempt);
        return;
    }
    attempt->is_parking = false;
    attempt->stop_ms = world->now_ms + world->of->settings[SET_GRACE_MS];
    /* After a mistake it stays where it is, so that a scheduler that runs in circles comes to an end. */
    if (world->of->settings[SET_GRACE_MS] == 0 && world->error.code == 0)
        stop(world, attempt);
}

static void on_reclaim(void *arg, uint64_t id, uint64_t parked)
{
    struct world *world = arg;
    const struct case_attempt *attempt = world_attempt(world, id);
    if (attempt != NULL)
        bound_reclaimed(world, attempt);
    on_preempt(arg, id, NULL);
}

static void on_unreserve(void *arg, uint64_t reservation)
{
    struct world *world = arg;
    for (size_t i = 0; i < world->ledger.n_reserved; i++)
        if (world->ledger.reserved[i].id == reservation)
            world->ledger.reserved[i].until_ms = 0;
}

void world_after_pass(struct world *world)
{
    for (size_t i = 0; i < world->n_attempts; i++) {
        if (!world->attempts[i].is_new)
            continue;
        world->attempts[i].is_new = false;
        sched_started(world->sched, world->now_ms, world->attempts[i].id);
    }
}

/* --- what happens --- */

static void end(struct world *world, struct case_attempt *attempt)
{
    size_t number = attempt->job;
    uint64_t id = attempt->id;
    const int64_t *job = job_values(world, number);
    struct case_state *state = &world->jobs[number];
    world_drop_attempt(world, attempt);
    sched_ended(world->sched, world->now_ms, id, job[JOB_RUN]);
    state->is_ok &= job[JOB_FAILS] == 0;
    if (job[JOB_ELEMENTS] > 0)
        state->open--;
    if (job[JOB_ELEMENTS] == 0 || (state->open == 0 && state->left == 0))
        finish_job(world, number);
}

static void cancel(struct world *world, size_t number)
{
    struct case_state *job = &world->jobs[number];
    if (job->state != CASE_WAITS)
        return;
    sched_withdraw(world->sched, world->now_ms, (uint64_t)job_values(world, number)[JOB_ID]);
    park_forget(world, number);
    bound_forget(world, number);
    job->left = 0;
    job->is_ok = false;
    job->state = job->open > 0 ? CASE_RUNS : CASE_OVER;
    if (job->open == 0)
        finish_job(world, number);
}

static void reserve(struct world *world, const int64_t *event)
{
    if (world->ledger.n_reserved == LEDGER_RESERVED)
        return;
    uint32_t uid = (uint32_t)event[EVENT_D];
    char name[] = "check";
    struct sched_request request = { .gpus = (uint32_t)event[EVENT_A] };
    struct sched_reservation reservation = { .id = world->ledger.n_reserved + 1,
        .name = name,
        .from_ms = world->now_ms + event[EVENT_B],
        .until_ms = world->now_ms + event[EVENT_B] + event[EVENT_C],
        .uids = &uid,
        .n_uids = 1 };
    struct error err;
    if (sched_reserve(world->sched, world->now_ms, &request, &reservation, &err) < 0)
        return;
    struct ledger_reserved *entry = &world->ledger.reserved[world->ledger.n_reserved++];
    *entry = (struct ledger_reserved){
        .id = reservation.id, .from_ms = reservation.from_ms, .until_ms = reservation.until_ms, .uid = uid
    };
    for (size_t i = 0; i < reservation.n_gpus && i < LEDGER_GPUS; i++) {
        entry->nodes[entry->n_gpus] = reservation.gpus[i].node;
        entry->gpus[entry->n_gpus++] = reservation.gpus[i].gpu;
    }
    free(reservation.gpus);
}

/* Its jobs are requeued. */
static void lose_node(struct world *world, uint32_t node)
{
    for (size_t i = world->n_attempts; i-- > 0;)
        for (size_t k = 0; k < world->attempts[i].allocation.n_nodes; k++)
            if (world->attempts[i].allocation.nodes[k].node == node) {
                stop(world, &world->attempts[i]);
                i = world->n_attempts; // the last one has taken its place: start again from the end
                break;
            }
}

static void change_node(struct world *world, const int64_t *event)
{
    struct cluster *cluster = sched_cluster(world->sched);
    uint32_t at = (uint32_t)event[EVENT_A], gpu = (uint32_t)event[EVENT_B];
    struct cluster_node *node = &cluster->nodes[at];
    struct ledger_node *books = &world->ledger.nodes[at];
    enum case_event_kind kind = (enum case_event_kind)event[EVENT_KIND];
    bool is_off = kind == HAPPEN_NODE_DOWN || kind == HAPPEN_DRAIN || kind == HAPPEN_PAUSE;
    if (kind <= HAPPEN_NODE_UP)
        books->is_down = is_off, node->is_up = !is_off;
    else if (kind <= HAPPEN_RESUME_NODE)
        books->is_drained = is_off, node->is_drained = is_off;
    else if (gpu < node->n_gpus)
        books->is_paused[gpu] = is_off, node->gpus[gpu].is_paused = is_off;
    cluster_touch(cluster, node);
    if (is_off)
        bound_excuse(world, at);
    if (kind == HAPPEN_NODE_DOWN) {
        lose_node(world, at);
        park_lose(world, at);
    }
}

static void happen(struct world *world, const int64_t *event)
{
    world->is_disturbed = true;
    if (event[EVENT_KIND] <= HAPPEN_RESUME_GPU)
        change_node(world, event);
    else if (event[EVENT_KIND] == HAPPEN_RESERVE)
        reserve(world, event), bound_excuse(world, WORLD_ALL_NODES);
    else if (find_job(world, event[EVENT_A]) < world->of->n_jobs)
        cancel(world, find_job(world, event[EVENT_A]));
}

/* What waits for something that will never be. */
static void give_up(struct world *world)
{
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        struct sched_job_status status;
        uint64_t id = (uint64_t)job_values(world, i)[JOB_ID];
        if (world->jobs[i].state != CASE_WAITS || dependency(world, job_values(world, i)) >= 0)
            continue;
        if (sched_job_status(world->sched, id, world->now_ms, &status) &&
            (status.blockers & BLOCK_NEVER) == 0)
            (void)error_set(&world->error, -EPROTO, "job %llu is not reported as never satisfiable",
                (unsigned long long)id);
        cancel(world, i);
    }
}

void world_happen(struct world *world)
{
    world->n_starts = 0;
    for (size_t i = world->n_attempts; i-- > 0;) {
        if (world->attempts[i].end_ms <= world->now_ms)
            end(world, &world->attempts[i]);
        else if (world->attempts[i].stop_ms <= world->now_ms && !bound_stop(world, &world->attempts[i]))
            stop(world, &world->attempts[i]);
        else
            continue;
        i = world->n_attempts;
    }
    for (size_t i = 0; i < world->of->n_events; i++) {
        if (world->has_happened[i] || world->of->events[i][EVENT_AT] > world->now_ms)
            continue;
        world->has_happened[i] = true;
        happen(world, world->of->events[i]);
    }
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        const int64_t *job = job_values(world, i);
        struct case_state *state = &world->jobs[i];
        if (state->state == CASE_COMES && job[JOB_AT] <= world->now_ms)
            submit(world, i);
        if (state->is_held && job[JOB_HOLD_UNTIL] <= world->now_ms) {
            state->is_held = false;
            sched_block(world->sched, world->now_ms, (uint64_t)job[JOB_ID], 0, BLOCK_HELD_USER, 0);
        }
    }
    give_up(world);
}

static void least(int64_t *at, int64_t value)
{
    *at = value < *at ? value : *at;
}

int64_t world_next_ms(const struct world *world)
{
    int64_t next = TIME_NEVER;
    for (size_t i = 0; i < world->n_attempts; i++) {
        least(&next, world->attempts[i].end_ms);
        least(&next, world->attempts[i].stop_ms);
    }
    for (size_t i = 0; i < world->of->n_events; i++)
        if (!world->has_happened[i])
            least(&next, world->of->events[i][EVENT_AT]);
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        if (world->jobs[i].state == CASE_COMES)
            least(&next, job_values(world, i)[JOB_AT]);
        if (world->jobs[i].is_held)
            least(&next, job_values(world, i)[JOB_HOLD_UNTIL]);
    }
    int64_t pass_ms = sched_next_ms(world->sched);
    if (pass_ms != TIME_NEVER)
        least(&next, pass_ms > world->now_ms ? pass_ms : world->now_ms + 1);
    return next;
}

bool world_is_over(const struct world *world)
{
    for (size_t i = 0; i < world->of->n_jobs; i++)
        if (world->jobs[i].state < CASE_OVER)
            return false;
    return true;
}

static void fill_cluster(struct world *world)
{
    struct cluster *cluster = sched_cluster(world->sched);
    for (size_t i = 0; i < world->of->n_nodes; i++) {
        const int64_t *from = world->of->nodes[i];
        char name[32];
        (void)snprintf(name, sizeof(name), "node%zu", i);
        struct cluster_node *node =
            cluster_set_node(cluster, name, (uint32_t)from[NODE_CPU], (uint64_t)from[NODE_MEMORY]);
        for (uint32_t gpu = 0; gpu < from[NODE_GPUS]; gpu++) {
            char uuid[32];
            (void)snprintf(uuid, sizeof(uuid), "GPU-%zu-%u", i, gpu);
            (void)cluster_set_gpu(cluster, node, gpu, uuid, "", (uint64_t)LEDGER_GPU_MEM, true);
        }
        cluster_touch(cluster, node);
    }
}

int64_t world_department(int64_t gid)
{
    return 1 + (gid > 1);
}

/* Groups enter their departments before they have jobs. */
static void make_departments(struct world *world)
{
    struct fairshare *fairshare = sched_fairshare(world->sched);
    if (world->of->settings[SET_SHARES] == 0)
        return;
    fairshare->has_group_shares = true; // one each
    fairshare_account(fairshare, 1, ACCOUNT_DEPARTMENT)->shares = (double)world->of->settings[SET_SHARES];
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        int64_t gid = world->of->jobs[i][JOB_GID];
        fairshare_set_parent(fairshare, fairshare_account(fairshare, (uint32_t)gid, ACCOUNT_GROUP),
            fairshare_account(fairshare, (uint32_t)world_department(gid), ACCOUNT_DEPARTMENT), 0);
    }
}

void world_init(struct world *world, const struct sim_case *of, const struct check_spoiler *spoiler)
{
    *world = (struct world){
        .of = of, .spoiler = spoiler, .last_element = FIRST_ELEMENT, .promised_ms = TIME_NEVER
    };
    struct sched_callbacks callbacks = { .arg = world,
        .start = on_start,
        .preempt = on_preempt,
        .reclaim = on_reclaim,
        .unreserve = on_unreserve };
    sched_settings_init(&world->settings);
    world->settings.policy = policies[of->settings[SET_POLICY]];
    world->settings.placement = placements[of->settings[SET_PLACEMENT]];
    world->settings.reservations = (uint32_t)of->settings[SET_RESERVATIONS];
    world->settings.node_jobs = (uint32_t)of->settings[SET_NODE_JOBS];
    world->settings.user_limits.jobs = (uint32_t)of->settings[SET_USER_JOBS];
    world->settings.user_limits.gpu_milli = (uint32_t)of->settings[SET_USER_GPUS];
    park_init(world);
    if (world->parking.options.is_on && !world->parking.options.is_auto)
        callbacks.may_preempt = park_may;
    bound_init(world, &callbacks);
    world->sched = sched_new(&world->settings, &callbacks);
    world->jobs = xcalloc(of->n_jobs + 1, sizeof(*world->jobs));
    world->has_happened = xcalloc(of->n_events + 1, sizeof(bool));
    ledger_init(&world->ledger, of);
    fill_cluster(world);
    make_departments(world);
}

void world_clear(struct world *world)
{
    sched_free(world->sched);
    for (size_t i = 0; i < world->n_attempts; i++)
        allocation_clear(&world->attempts[i].allocation);
    free(world->attempts);
    free(world->returned);
    free(world->jobs);
    free(world->has_happened);
    park_clear(world);
    bound_clear(world);
    ledger_clear(&world->ledger);
}
