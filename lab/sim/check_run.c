/* SPDX-License-Identifier: MIT */
/*
 * The properties that are checked:
 *   - nothing is allocated twice or against a rule (check_ledger.c), limits of users hold, no job starts
 *     while held, before its begin time, above its array's limit or before its dependencies;
 *   - conservation: the scheduler knows each job until it ends, and in the end every job that could run has;
 *   - starvation: the first job in the queue, with a reservation, starts by the time first promised, if
 *     durations are known and the cluster and its rank do not change;
 *   - fair share: of users with similar jobs, none gets less than half of what another gets, whatever their
 *     groups; if groups have shares, the same of the users of a group, of the groups of a department, and of
 *     departments in proportion to their shares;
 *   - the promise: no job is placed ahead of one that was submitted longer ago than promised (check_order.c);
 *   - own priorities order each user's jobs and move none before another user's (check_order.c);
 *   - no job that the scheduler has parked is parked for longer than promised (check_bound.c), and parked
 * jobs return where they may (check_park.c);
 *   - sched_invariant() after every pass.
 */
#include "lab/sim/check_run.h"

#include <errno.h>
#include <string.h>

#include "lab/sim/check_bound.h"
#include "lab/sim/check_order.h"
#include "lab/sim/check_world.h"

#define INSTANTS_MAX  50000U
#define ROUNDS_MAX    200U
#define FAIR_ROUNDS   6 // starts per user before shares are compared
#define FAIR_ACCOUNTS 8

/* What users, groups or departments have had: an account is a number, and has a parent. */
struct level {
    const char *name;
    int64_t starts[FAIR_ACCOUNTS], waiting[FAIR_ACCOUNTS], parents[FAIR_ACCOUNTS], shares[FAIR_ACCOUNTS];
};

static void count_level(
    struct level *level, int64_t account, int64_t parent, int64_t shares, const struct case_state *job)
{
    account &= FAIR_ACCOUNTS - 1;
    level->starts[account] += job->n_started > 0;
    level->waiting[account] += job->state == CASE_WAITS;
    level->parents[account] = parent;
    level->shares[account] = shares;
}

/* Of two accounts below one parent, both with waiting jobs, neither has had less than half of the other's
 * starts per share. One start more or less is no difference. */
static int compare_level(const struct level *level, struct error *err)
{
    for (size_t a = 0; a < FAIR_ACCOUNTS; a++)
        for (size_t b = 0; b < FAIR_ACCOUNTS; b++)
            if (level->waiting[a] > 0 && level->waiting[b] > 0 && level->parents[a] == level->parents[b] &&
                2 * (level->starts[a] + 1) * level->shares[b] < level->starts[b] * level->shares[a])
                return error_set(err, -EPROTO,
                    "%s %zu has had %lld starts and %s %zu %lld, with %lld and %lld shares", level->name, a,
                    (long long)level->starts[a], level->name, b, (long long)level->starts[b],
                    (long long)level->shares[a], (long long)level->shares[b]);
    return 0;
}

static int check_fairness(const struct world *world, struct error *err)
{
    struct level levels[] = { { .name = "user" }, { .name = "group" }, { .name = "department" } };
    int64_t departments = world->of->settings[SET_SHARES], users = 0, all = 0;
    int result = 0;
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        const int64_t *job = world->of->jobs[i];
        int64_t department = departments > 0 ? world_department(job[JOB_GID]) : 0;
        users = job[JOB_UID] > users ? job[JOB_UID] : users;
        all += world->jobs[i].n_started > 0;
        count_level(&levels[0], job[JOB_UID], departments > 0 ? job[JOB_GID] : 0, 1, &world->jobs[i]);
        if (departments == 0)
            continue;
        count_level(&levels[1], job[JOB_GID], department, 1, &world->jobs[i]);
        count_level(&levels[2], department, 0, department == 1 ? departments : 1, &world->jobs[i]);
    }
    if (all < users * FAIR_ROUNDS * world->of->nodes[0][NODE_GPUS])
        return 0;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]) && result == 0; i++)
        result = compare_level(&levels[i], err);
    return result;
}

/* Checks whether the first job in the queue waits beyond its promised start. */
static int check_starvation(struct world *world, struct error *err)
{
    enum backfill backfill = policies[world->of->settings[SET_POLICY]]->backfill;
    bool is_bound = world->of->settings[SET_IS_EXACT] != 0 && backfill >= BACKFILL_EASY;
    for (size_t i = 0; i < world->of->n_jobs; i++)
        is_bound &= world->of->jobs[i][JOB_TOLD] == 0;
    uint64_t first = 0;
    int64_t shadow_ms = TIME_NEVER;
    for (size_t i = 0; i < world->of->n_jobs && is_bound; i++) {
        struct sched_job_status status;
        uint64_t id = (uint64_t)world->of->jobs[i][JOB_ID];
        if (world->jobs[i].state != CASE_WAITS || !sched_job_status(world->sched, id, world->now_ms, &status))
            continue;
        if (status.position != 1 || world->of->jobs[i][JOB_ELEMENTS] > 0)
            continue;
        first = id;
        shadow_ms = status.shadow_ms;
    }
    if (first == 0 || shadow_ms == TIME_NEVER || world->is_disturbed || first != world->first) {
        world->first = shadow_ms == TIME_NEVER ? 0 : first;
        world->promised_ms = shadow_ms;
        world->promised_at_ms = world->now_ms;
        world->is_disturbed = false;
        return 0;
    }
    if (world->now_ms <= world->promised_ms)
        return 0;
    return error_set(err, -EPROTO,
        "job %llu is first, was promised GPUs for %lld ms and is still waiting (now %lld ms)",
        (unsigned long long)first, (long long)world->promised_ms, (long long)shadow_ms);
}

static int check_conservation(const struct world *world, struct error *err)
{
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        const struct case_state *job = &world->jobs[i];
        struct sched_job_status status;
        uint64_t id = (uint64_t)world->of->jobs[i][JOB_ID];
        bool is_known = sched_job_status(world->sched, id, world->now_ms, &status);
        bool should_be = job->state == CASE_WAITS || job->state == CASE_RUNS;
        if (is_known != should_be)
            return error_set(err, -EPROTO, "the scheduler %s job %llu, which %s",
                is_known ? "knows" : "has lost", (unsigned long long)id,
                should_be ? "is not over" : "is over");
        if (is_known && world->of->jobs[i][JOB_ELEMENTS] == 0 &&
            status.is_running != (job->state == CASE_RUNS))
            return error_set(err, -EPROTO, "the scheduler believes that job %llu %s", (unsigned long long)id,
                status.is_running ? "runs" : "does not run");
    }
    return 0;
}

static int finish_instant(struct world *world, struct error *err)
{
    for (unsigned round = 0; sched_is_dirty(world->sched) || sched_next_ms(world->sched) <= world->now_ms;
         round++) {
        if (round == ROUNDS_MAX)
            return error_set(err, -EPROTO, "the scheduler never finishes");
        sched_pass(world->sched, world->now_ms);
        world_after_pass(world);
        if (world->error.code != 0) {
            *err = world->error;
            return err->code;
        }
        if (!sched_is_dirty(world->sched))
            break;
    }
    bound_check(world);
    if (world->error.code != 0) {
        *err = world->error;
        return err->code;
    }
    int result = sched_invariant(world->sched, err);
    if (result < 0)
        return error_set(err, -EPROTO, "invariant: %.400s", strdupa(err->message));
    result = check_conservation(world, err);
    if (result == 0)
        result = check_starvation(world, err);
    if (result == 0)
        result = order_check(world, err);
    if (result == 0 && world->of->settings[SET_IS_FAIR] != 0)
        result = check_fairness(world, err);
    return result;
}

static int check_end(const struct world *world, struct error *err)
{
    for (size_t i = 0; i < world->of->n_nodes; i++) {
        const struct ledger_node *node = &world->ledger.nodes[i];
        bool is_away = node->is_down || node->is_drained;
        for (size_t k = 0; k < LEDGER_GPUS; k++)
            is_away |= node->is_paused[k];
        if (is_away) // only in a case that was cut down
            return 0;
    }
    for (size_t i = 0; i < world->of->n_jobs; i++)
        if (world->jobs[i].state == CASE_WAITS || world->jobs[i].state == CASE_RUNS)
            return error_set(err, -EPROTO, "job %lld never %s, although nothing prevents it",
                (long long)world->of->jobs[i][JOB_ID],
                world->jobs[i].state == CASE_WAITS ? "starts" : "ends");
    return 0;
}

int check_run(const struct sim_case *of, const struct check_spoiler *spoiler, struct error *err)
{
    _cleanup_(world_clear) struct world world;
    world_init(&world, of, spoiler);
    int result = 0;
    for (unsigned instant = 0; result == 0 && instant < INSTANTS_MAX; instant++) {
        int64_t next_ms = world_next_ms(&world);
        if (next_ms == TIME_NEVER)
            break;
        world.now_ms = next_ms;
        world_happen(&world);
        result = world.error.code;
        if (result < 0)
            *err = world.error;
        else
            result = finish_instant(&world, err);
        if (world_is_over(&world))
            break;
    }
    if (result == 0)
        result = check_end(&world, err);
    if (result < 0)
        (void)error_wrap(err, "at %lld ms", (long long)world.now_ms);
    return result;
}
