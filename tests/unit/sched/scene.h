/* SPDX-License-Identifier: MIT */
/* A scheduler with a cluster and a clock of its own, and a record of what it decided. */
#pragma once

#include "sched/sched.h"

#define SCENE_STARTS 4096

struct scene_start {
    uint64_t job;   // under which it runs
    uint64_t asked; // the job or array it came from
    int64_t at_ms;
    uint32_t node, gpu; // the first it got
    size_t n_gpus;
};

struct scene {
    struct sched *sched;
    struct sched_settings settings;
    int64_t now_ms;
    uint64_t last_job;
    struct scene_start starts[SCENE_STARTS];
    size_t n_starts;
    uint64_t preempted[64];
    size_t n_preempted;
    uint64_t parks[64], guests[64]; // to be parked, and for which job (0: a parked one returns)
    size_t n_parks;
    uint64_t
        lenders[64]; // to which the GPUs of preempted jobs are due; 0: they are preempted for another reason
    uint64_t cannot_park;  // a job that is known not to be parkable
    bool may_borrow;       // and the same may borrow GPUs
    bool refuses_at_once;  // what is to be parked refuses before the pass goes on
    uint64_t returned[16]; // reservations
    size_t n_returned;
};

/* `nodes` nodes n0, n1, ... with so many GPUs of 24 GiB, 64 CPUs and 256 GiB. Settings may be changed before
 * scene_open(): policy easy, best fit, one reservation. */
struct scene *scene_new(void);
void scene_open(struct scene *scene, uint32_t nodes, uint32_t gpus);
void scene_free(struct scene *scene);
void scene_freep(struct scene **scene);
int scene_close(void **state); // a test's, as its teardown
/* A scene of its own with a fork of the scheduler, which goes on from here. */
struct scene *scene_fork(const struct scene *scene, size_t max_jobs);

/* A job of user 1 with an exact estimate in seconds (0: learnt) for so many GPUs; change it before
 * scene_submit(). */
struct sched_job_spec scene_job(struct scene *scene, uint32_t gpus, int64_t seconds);
uint64_t scene_submit(struct scene *scene, const struct sched_job_spec *spec); // and a pass
uint64_t scene_add(struct scene *scene, uint32_t gpus, int64_t seconds);       // job, submit, pass

void scene_end(struct scene *scene, uint64_t job); // ends well, settled, and a pass
void scene_fail(struct scene *scene, uint64_t job);
/* Lets the time pass, with a pass at each timer. */
void scene_wait(struct scene *scene, int64_t seconds);

bool scene_runs(const struct scene *scene, uint64_t job);
const struct scene_start *scene_start_of(const struct scene *scene, uint64_t job); // the latest; NULL: none
size_t scene_starts_from(const struct scene *scene, uint64_t asked);
