/* SPDX-License-Identifier: MIT */
/*
 * The order of own priorities, and the promise of the default policy, implemented again as conditions on
 * pairs of waiting jobs. Jobs of a class have the position of its oldest, and the scheduler decides which
 * jobs form a class: between users this is therefore a bound that holds for any such choice, for policies
 * ordered by submit time.
 */
#include "lab/sim/check_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/queue/policy.h"

/* What users are promised (docs/scheduling.md): jobs submitted so many times its time limit after a job, or
 * this long after it, are not placed ahead of it. */
#define PROMISED_LIMITS 30
#define PROMISED_MS     (INT64_C(60) * 24 * 3600 * 1000)

/* A job that waits in the queue. */
struct waiting {
    const int64_t *job;
    int64_t position;
    /* Submit times of the oldest job that may be in its class, and of the last of those that its owner
     * prefers. */
    int64_t class_at, class_id, held_at, held_id;
    bool has_run; // it or one of those: the time that a job ran is no waiting, so it came later than it did
};

/* Policies that order equal jobs by submit time. */
static bool is_by_submit(const struct sim_case *of)
{
    static const char *const names[] = { "fifo", "fifo-skip", "easy", "conservative" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(policies[of->settings[SET_POLICY]]->name, names[i]) == 0)
            return true;
    return false;
}

static bool is_alike(const struct sim_case *of, const int64_t *a, const int64_t *b)
{
    bool is_as_long = of->settings[SET_IS_EXACT] == 0 || a[JOB_RUN] == b[JOB_RUN];
    return is_as_long && memcmp(a + JOB_UID, b + JOB_UID, (JOB_LIMIT + 1 - JOB_UID) * sizeof(*a)) == 0 &&
           a[JOB_OWN] == b[JOB_OWN];
}

static bool comes_before(int64_t at, int64_t id, int64_t other_at, int64_t other_id)
{
    return at < other_at || (at == other_at && id < other_id);
}

static void find_bounds(const struct world *world, struct waiting *waiting)
{
    const int64_t *job = waiting->job;
    waiting->class_at = waiting->held_at = job[JOB_AT];
    waiting->class_id = waiting->held_id = job[JOB_ID];
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        const int64_t *other = world->of->jobs[i];
        enum case_job_state state = world->jobs[i].state;
        if (state != CASE_WAITS && state != CASE_RUNS)
            continue;
        if (is_alike(world->of, job, other) &&
            comes_before(other[JOB_AT], other[JOB_ID], waiting->class_at, waiting->class_id))
            waiting->class_at = other[JOB_AT], waiting->class_id = other[JOB_ID];
        if (world_is_held_by(job, other) &&
            comes_before(waiting->held_at, waiting->held_id, other[JOB_AT], other[JOB_ID]))
            waiting->held_at = other[JOB_AT], waiting->held_id = other[JOB_ID];
        waiting->has_run |= (other == job || world_is_held_by(job, other)) && world->jobs[i].n_started > 0;
    }
}

static int64_t promised_until(const int64_t *job)
{
    int64_t by_limit = PROMISED_LIMITS * job[JOB_LIMIT];
    return job[JOB_AT] + (by_limit > 0 && by_limit < PROMISED_MS ? by_limit : PROMISED_MS);
}

/* Checks the promise to `second`. A class has the position of its oldest job. A job that ran, or that follows
 * another one of its owner, has none. */
static int compare_promise(
    const struct world *world, const struct waiting *first, const struct waiting *second, struct error *err)
{
    const int64_t *a = first->job, *b = second->job;
    bool is_promised = policies[world->of->settings[SET_POLICY]] == &policy_default && !second->has_run &&
                       second->held_id == b[JOB_ID] && b[JOB_PREEMPTIBLE] == 0 &&
                       a[JOB_PRIORITY] == b[JOB_PRIORITY];
    if (!is_promised || first->class_at <= promised_until(b))
        return 0;
    return error_set(err, -EPROTO,
        "job %lld stands before job %lld, to which only jobs submitted until %lld ms may be preferred",
        (long long)a[JOB_ID], (long long)b[JOB_ID], (long long)promised_until(b));
}

/* Checks whether `first` may precede `second`. */
static int compare(
    const struct world *world, const struct waiting *first, const struct waiting *second, struct error *err)
{
    const int64_t *a = first->job, *b = second->job;
    if (world_is_held_by(a, b))
        return error_set(err, -EPROTO,
            "job %lld stands before job %lld, which its owner wants before it (%lld before %lld)",
            (long long)a[JOB_ID], (long long)b[JOB_ID], (long long)b[JOB_OWN], (long long)a[JOB_OWN]);
    if (!is_by_submit(world->of) || second->has_run || a[JOB_UID] == b[JOB_UID] ||
        a[JOB_PRIORITY] != b[JOB_PRIORITY] || a[JOB_PREEMPTIBLE] != b[JOB_PREEMPTIBLE])
        return 0;
    /* Behind a job of its owner, it is behind all that came in that millisecond. */
    bool is_held = second->held_id != b[JOB_ID];
    if (!comes_before(
            second->held_at, is_held ? INT64_MAX : second->held_id, first->class_at, first->class_id))
        return 0;
    return error_set(err, -EPROTO,
        "job %lld of user %lld stands before job %lld of user %lld, which came first", (long long)a[JOB_ID],
        (long long)a[JOB_UID], (long long)b[JOB_ID], (long long)b[JOB_UID]);
}

int order_check(const struct world *world, struct error *err)
{
    _cleanup_free_ struct waiting *all = xcalloc(world->of->n_jobs + 1, sizeof(*all));
    size_t n = 0;
    int result = 0;
    for (size_t i = 0; i < world->of->n_jobs; i++) {
        struct sched_job_status status;
        const int64_t *job = world->of->jobs[i];
        if (world->jobs[i].state != CASE_WAITS || job[JOB_ELEMENTS] > 0 ||
            !sched_job_status(world->sched, (uint64_t)job[JOB_ID], world->now_ms, &status) ||
            status.position == 0)
            continue;
        all[n] = (struct waiting){ .job = job, .position = (int64_t)status.position };
        find_bounds(world, &all[n++]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && result == 0; k++)
            if (all[i].position < all[k].position)
                result = compare_promise(world, &all[i], &all[k], err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && result == 0; k++)
            if (all[i].position < all[k].position)
                result = compare(world, &all[i], &all[k], err);
    return result;
}
