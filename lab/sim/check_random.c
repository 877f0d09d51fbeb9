/* SPDX-License-Identifier: MIT */
/* Generates cases from a seed: small clusters and short times, because most errors need only a few jobs. */
#include <stdlib.h>

#include "base/memory.h"
#include "lab/sim/check_case.h"
#include "lab/sim/random.h"
#include "sched/placement/placement.h"
#include "sched/queue/policy.h"

#define SPAN_MS 600000 // within which everything is submitted and happens
#define MIB     (1LL << 20)

static int64_t up_to(struct random *random, int64_t most)
{
    return (int64_t)random_below(random, (uint64_t)most + 1);
}

static bool one_in(struct random *random, uint64_t count)
{
    return random_below(random, count) == 0;
}

static int64_t moment(struct random *random)
{
    return up_to(random, SPAN_MS / 1000) * 1000;
}

static int64_t length_of(const void *const *list)
{
    int64_t count = 0;
    while (list[count] != NULL)
        count++;
    return count;
}

static void make_settings(struct sim_case *ret, struct random *random)
{
    ret->settings[SET_POLICY] = up_to(random, length_of((const void *const *)policies) - 1);
    ret->settings[SET_PLACEMENT] = up_to(random, length_of((const void *const *)placements) - 1);
    ret->settings[SET_RESERVATIONS] = up_to(random, 4);
    ret->settings[SET_NODE_JOBS] = one_in(random, 6) ? 1 + up_to(random, 4) : 0;
    ret->settings[SET_USER_JOBS] = one_in(random, 4) ? 1 + up_to(random, 4) : 0;
    ret->settings[SET_USER_GPUS] = one_in(random, 4) ? 1000 + 1000 * up_to(random, 8) : 0;
    ret->settings[SET_GRACE_MS] = one_in(random, 2) ? 0 : 5000;
    ret->settings[SET_IS_EXACT] = one_in(random, 2);
}

static void make_request(int64_t *job, const struct sim_case *of, struct random *random)
{
    job[JOB_GPUS] = 1 + up_to(random, one_in(random, 4) ? 11 : 3);
    switch (random_below(random, 12)) {
    case 0:
    case 1:
        job[JOB_GPUS] = 1;
        job[JOB_SHARE] = 1 + up_to(random, 998);
        break;
    case 2:
        job[JOB_GPUS] = 1;
        job[JOB_GPU_MEM] = (1 + up_to(random, 60000)) * MIB;
        break;
    case 3:
        job[JOB_GPUS] = 1;
        job[JOB_PICK] = up_to(random, (int64_t)of->n_nodes - 1) * 256 + up_to(random, 7) + 1;
        break;
    case 4: job[JOB_ALLOW] = 1 + up_to(random, 254); break;
    case 5:
        job[JOB_NODES] = 1 + up_to(random, 2);
        job[JOB_PER_NODE] = 1 + up_to(random, 3);
        job[JOB_GPUS] = job[JOB_NODES] * job[JOB_PER_NODE];
        break;
    case 6:
        job[JOB_GPUS] = 0;
        job[JOB_CPU] = 1000;
        break;
    default: break;
    }
    if (one_in(random, 3))
        job[JOB_CPU] = 500 * (1 + up_to(random, 8));
    if (one_in(random, 4))
        job[JOB_MEMORY] = 1024 * MIB * (1 + up_to(random, 16));
}

static void make_job(int64_t *job, int64_t id, const struct sim_case *of, struct random *random)
{
    job[JOB_ID] = id;
    job[JOB_AT] = moment(random);
    job[JOB_RUN] = 1000 * (1 + up_to(random, one_in(random, 5) ? 400 : 40));
    job[JOB_UID] = 1 + up_to(random, 3);
    job[JOB_GID] = 1 + job[JOB_UID] / 3;
    job[JOB_PRIORITY] = one_in(random, 5) ? up_to(random, 20) - 10 : 0;
    make_request(job, of, random);
    job[JOB_PREEMPTIBLE] = one_in(random, 5);
    job[JOB_LIMIT] = one_in(random, 3) ? job[JOB_RUN] + 1000 * up_to(random, 60) : 0;
    job[JOB_BEGIN] = one_in(random, 8) ? moment(random) : 0;
    job[JOB_HOLD_UNTIL] = one_in(random, 10) ? moment(random) : 0;
    job[JOB_FAILS] = one_in(random, 6);
    if (id > 1 && one_in(random, 6)) {
        job[JOB_AFTER] = 1 + up_to(random, id - 2);
        job[JOB_AFTER_KIND] = up_to(random, 2);
    }
    if (one_in(random, 10)) {
        job[JOB_ELEMENTS] = 1 + up_to(random, 6);
        job[JOB_ELEMENT_LIMIT] = one_in(random, 2) ? 1 + up_to(random, 3) : 0;
    }
    if (job[JOB_PRIORITY] == 0 && job[JOB_ELEMENTS] == 0 && one_in(random, 3))
        job[JOB_OWN] = 1 + up_to(random, 3);
}

static void add_event(struct sim_case *ret, int64_t at_ms, enum case_event_kind kind, int64_t a, int64_t b,
    int64_t c, int64_t d)
{
    int64_t *event = ret->events[ret->n_events++];
    event[EVENT_AT] = at_ms;
    event[EVENT_KIND] = kind;
    event[EVENT_A] = a;
    event[EVENT_B] = b;
    event[EVENT_C] = c;
    event[EVENT_D] = d;
}

/* What goes away returns, so that in the end every job that could run must have run. */
static void make_event(struct sim_case *ret, struct random *random)
{
    int64_t from_ms = moment(random), until_ms = from_ms + 1000 * (1 + up_to(random, 120));
    int64_t node = up_to(random, (int64_t)ret->n_nodes - 1), gpu = up_to(random, 7);
    switch (random_below(random, 5)) {
    case 0:
        add_event(ret, from_ms, HAPPEN_NODE_DOWN, node, 0, 0, 0);
        add_event(ret, until_ms, HAPPEN_NODE_UP, node, 0, 0, 0);
        break;
    case 1:
        add_event(ret, from_ms, HAPPEN_DRAIN, node, 0, 0, 0);
        add_event(ret, until_ms, HAPPEN_RESUME_NODE, node, 0, 0, 0);
        break;
    case 2:
        add_event(ret, from_ms, HAPPEN_PAUSE, node, gpu, 0, 0);
        add_event(ret, until_ms, HAPPEN_RESUME_GPU, node, gpu, 0, 0);
        break;
    case 3:
        add_event(ret, from_ms, HAPPEN_CANCEL, 1 + up_to(random, (int64_t)ret->n_jobs - 1), 0, 0, 0);
        break;
    default:
        add_event(ret, from_ms, HAPPEN_RESERVE, 1 + up_to(random, 3), 1000 * up_to(random, 100),
            1000 * (1 + up_to(random, 100)), 1 + up_to(random, 3));
        break;
    }
}

/* Users with equal shares and more similar, long jobs than the cluster can run at a time, because a user with
 * less usage than about a GPU-hour counts as new. Own priorities of a user's jobs do not change shares. In
 * half of the cases they are in the groups of two departments, in some others in groups of different sizes.
 */
static void make_fair(struct sim_case *ret, struct random *random)
{
    int64_t users = 2 + up_to(random, 3), gpus = 1 + up_to(random, 3),
            run_ms = 1000 * (7200 + up_to(random, 7200)), own = up_to(random, 3);
    bool has_departments = one_in(random, 2), has_groups = has_departments || one_in(random, 2);
    ret->settings[SET_POLICY] = 0;
    ret->settings[SET_RESERVATIONS] = 1;
    ret->settings[SET_IS_FAIR] = 1;
    ret->settings[SET_SHARES] = has_departments ? 1 + up_to(random, 2) : 0;
    ret->n_nodes = 1;
    ret->nodes[0][NODE_GPUS] = gpus;
    ret->nodes[0][NODE_CPU] = 64000;
    for (int64_t i = 0; i < users * gpus * 12; i++) {
        int64_t *job = ret->jobs[ret->n_jobs++];
        job[JOB_ID] = i + 1;
        job[JOB_RUN] = run_ms;
        job[JOB_UID] =
            1 + i / (gpus * 12); // one user after the other: first come first served would be unfair
        job[JOB_GID] = has_groups ? 1 + (job[JOB_UID] > 1) + (job[JOB_UID] > 3) : 0;
        job[JOB_GPUS] = 1;
        job[JOB_OWN] = job[JOB_UID] == 1 ? up_to(random, own) : 0;
    }
}

/* Whole GPUs of any kind, on one small node. */
static void make_crowded(struct sim_case *ret, struct random *random)
{
    for (size_t i = 0; i < ret->n_nodes; i++)
        ret->nodes[i][NODE_GPUS] = i == 0 ? 1 + up_to(random, 2) : 0;
    for (size_t i = 0; i < ret->n_jobs; i++) {
        int64_t *job = ret->jobs[i];
        job[JOB_GPUS] = 1 + up_to(random, ret->nodes[0][NODE_GPUS] - 1);
        job[JOB_SHARE] = job[JOB_GPU_MEM] = job[JOB_NODES] = job[JOB_PER_NODE] = job[JOB_PICK] = 0;
        job[JOB_ALLOW] = job[JOB_ELEMENTS] = job[JOB_ELEMENT_LIMIT] = job[JOB_PRIORITY] = 0;
        job[JOB_LIMIT] = one_in(random, 3) ? job[JOB_LIMIT] : 0;
    }
}

/* The scheduler parks jobs by its own rule in a fourth of the cases of policies that may do so. What is
 * parked keeps its CPUs and memory, and each job gets its GPUs for some time at least, so some need none of
 * these, and some run for longer. */
static void make_rule(struct sim_case *ret, struct random *random)
{
    if (policies[ret->settings[SET_POLICY]]->backfill == BACKFILL_NONE || !one_in(random, 4))
        return;
    bool has_preemptible = one_in(random, 3);
    if (!one_in(random, 3))
        make_crowded(ret, random);
    ret->settings[SET_PARK] = CHECK_PARK_AUTO;
    ret->settings[SET_PARK_ROOM] = 3000;
    ret->settings[SET_IS_EXACT] = 1;
    for (size_t i = 0; i < ret->n_jobs; i++) {
        int64_t *job = ret->jobs[i];
        job[JOB_REFUSES] = one_in(random, 4) ? up_to(random, 2) : 0;
        job[JOB_PREEMPTIBLE] &= has_preemptible;
        if (one_in(random, 2))
            job[JOB_CPU] = job[JOB_MEMORY] = 0;
        job[JOB_RUN] *= one_in(random, 3) ? 10 : 1;
        job[JOB_LIMIT] *= job[JOB_LIMIT] < job[JOB_RUN] ? 10 : 1;
        job[JOB_TOLD] = job[JOB_REFUSES] > 0 && one_in(random, 2) ? 1 + job[JOB_RUN] / 200 : 0;
    }
}

/* Drawn last, so that cases without parking are those of older versions. What is parked stays at once. */
static void make_parking(struct sim_case *ret, struct random *random)
{
    if (one_in(random, 8)) { // the others rarely preempt in so short a time
        ret->settings[SET_POLICY] = 0;
        while (policies[ret->settings[SET_POLICY]]->preempting != PREEMPT_SRTF)
            ret->settings[SET_POLICY]++;
        ret->settings[SET_IS_EXACT] = 1;
    }
    if (policies[ret->settings[SET_POLICY]]->preempting == PREEMPT_NONE) {
        make_rule(ret, random);
        return;
    }
    if (one_in(random, 4))
        return;
    ret->settings[SET_PARK] = 1 + up_to(random, CHECK_PARK_GPU - 1);
    ret->settings[SET_PARK_ROOM] = 250 * up_to(random, 8);
    ret->settings[SET_GRACE_MS] = 0;
    for (size_t i = 0; i < ret->n_jobs; i++) {
        ret->jobs[i][JOB_REFUSES] = one_in(random, 4);
        ret->jobs[i][JOB_RUN] *= one_in(random, 3) ? 10 : 1; // longer than the quantum
    }
}

void case_make(struct sim_case *ret, uint64_t seed)
{
    struct random random = { .state = seed };
    (void)random_next(&random);
    size_t n_jobs = 5 + (size_t)up_to(&random, 40), n_events = (size_t)up_to(&random, 6);
    *ret = (struct sim_case){ .nodes = xcalloc(8, sizeof(*ret->nodes)),
        .jobs = xcalloc(1000, sizeof(*ret->jobs)),
        .events = xcalloc(64, sizeof(*ret->events)) };
    if (one_in(&random, 20)) {
        make_fair(ret, &random);
        return;
    }
    make_settings(ret, &random);
    ret->n_nodes = 1 + (size_t)up_to(&random, 4);
    for (size_t i = 0; i < ret->n_nodes; i++) {
        ret->nodes[i][NODE_GPUS] = up_to(&random, 8);
        ret->nodes[i][NODE_CPU] = 4000 + 1000 * up_to(&random, 28);
        ret->nodes[i][NODE_MEMORY] = one_in(&random, 3) ? 0 : 8192 * MIB * (1 + up_to(&random, 7));
    }
    for (size_t i = 0; i < n_jobs; i++)
        make_job(ret->jobs[i], (int64_t)i + 1, ret, &random);
    ret->n_jobs = n_jobs;
    for (size_t i = 0; i < n_events; i++)
        make_event(ret, &random);
    make_parking(ret, &random);
}
