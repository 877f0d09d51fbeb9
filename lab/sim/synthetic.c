/* SPDX-License-Identifier: MIT */
/*
 * A user (a few are busy, most are not) has ten commands; each has a typical width and a typical duration,
 * around which its runs vary. Widths as in published GPU clusters: most jobs use one GPU. Times between
 * submits are exponential.
 */
#include "lab/sim/synthetic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "lab/sim/random.h"

#define PREFIX         "synthetic:"
#define COMMANDS       10U
#define LOAD           0.95 // of what the cluster could do
#define GROUPS         20U
#define DURATION_MAX_S (7 * 86400.0)

bool synthetic_is(const char *path)
{
    return strncmp(path, PREFIX, strlen(PREFIX)) == 0;
}

/* Of a standard normal distribution, by Box and Muller. */
static double normal(struct random *random)
{
    double part = random_part(random);
    return sqrt(-2 * log(1 - part)) * cos(6.283185307179586 * random_part(random));
}

static uint32_t width(struct random *random, uint32_t most)
{
    static const struct {
        double part;
        uint32_t gpus;
    } widths[] = { { 0.75, 1 }, { 0.84, 2 }, { 0.92, 4 }, { 0.985, 8 }, { 1, 16 } };
    double part = random_part(random);
    size_t at = 0;
    while (part >= widths[at].part)
        at++;
    return widths[at].gpus < most ? widths[at].gpus : most;
}

struct habit {
    uint32_t gpus;
    double duration_s;
};

static void make_habit(
    const struct sim_nodes *nodes, uint64_t seed, uint32_t user, uint32_t command, struct habit *ret)
{
    struct random random = { .state =
                                 seed ^ ((uint64_t)user * COMMANDS + command + 1) * 0x2545f4914f6cdd1dULL };
    (void)random_next(&random);
    ret->gpus = width(&random, nodes->gpus < 16 ? (uint32_t)nodes->gpus : 16);
    ret->duration_s = exp(log(1200) + 1.5 * normal(&random));
}

int synthetic_make(struct workload *workload, const char *path, const struct sim_nodes *nodes, uint64_t seed,
    struct error *err)
{
    int64_t jobs = 0;
    int result = parse_integer(path + strlen(PREFIX), "number of synthetic jobs", 1, 100000000, &jobs, err);
    if (result < 0)
        return result;
    if (nodes->gpus == 0)
        return error_set(err, -EINVAL, "%.60s: the cluster has no GPUs", path);
    (void)names_number(&workload->models, "");
    for (uint32_t user = 0; user < SYNTHETIC_USERS; user++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "user%u", user + 1);
        (void)names_number(&workload->users, name);
        (void)snprintf(name, sizeof(name), "group%u", user % GROUPS + 1);
        (void)names_number(&workload->groups, name);
    }
    struct random random = { .state = seed };
    double work = 0;
    for (int64_t i = 0; i < jobs; i++) {
        double part = random_part(&random);
        uint32_t user = (uint32_t)(part * part * part * SYNTHETIC_USERS);
        uint32_t command = (uint32_t)random_below(&random, COMMANDS);
        struct habit habit;
        make_habit(nodes, seed, user, command, &habit);
        double duration_s = habit.duration_s * exp(0.5 * normal(&random));
        duration_s = duration_s < 1 ? 1 : duration_s > DURATION_MAX_S ? DURATION_MAX_S : duration_s;
        struct sim_job job = { .duration_ms = (int64_t)duration_s * 1000,
            .command_hash = HASH_START + command,
            .user = user,
            .group = user % GROUPS,
            .gpus = habit.gpus };
        work += duration_s * habit.gpus;
        workload_add(workload, &job);
    }
    double gap_s = work / (double)jobs / (double)nodes->gpus / LOAD, at_s = 0;
    for (size_t i = 0; i < workload->n_jobs; i++) {
        workload->jobs[i].submit_ms = (int64_t)at_s * 1000;
        at_s -= gap_s * log(1 - random_part(&random));
    }
    return 0;
}
