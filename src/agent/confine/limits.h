/* SPDX-License-Identifier: MIT */
/*
 * Host resources of an attempt, limited by the kernel: memory (-M), CPUs (-c) and the number of processes.
 * Each controller is used where this system has it: on the attempt's own directory in cgroup v2, or in a flat
 * directory of a v1 hierarchy, which the step's init enters. A controller that is not available is off: its
 * resource is then only accounted for by the scheduler.
 */
#pragma once

#include <stdbool.h>

#include "agent/confine/confine.h"
#include "base/error.h"
#include "base/spool.h"
#include "job/launch.h"

enum limit_controller { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU, LIMIT_CPUSET, LIMIT_DMEM, LIMIT_CONTROLLERS };

struct limits;

/* Finds v1 hierarchies. `parent` is the cgroup delegated for jobs, or NULL. Never fails: unusable controllers
 * are off. Finds the groups that an earlier agent of the instance in `run_dir` created. */
struct limits *limits_new(const char *run_dir, const char *parent);
void limits_free(struct limits *limits);

/* Enables every available v2 controller for children of the instance's directory. To be called again after
 * that directory was recreated. */
void limits_enable_v2(struct limits *limits, const char *instance);

/*
 * Applies the limits of `spec` (memory_limit, cpu_milli, pids_max, dmem) to the attempt and sets v1_cgroups
 * and memory_cgroup. `attempt` is its directory in v2, NULL without one. Idempotent. A limit whose controller
 * is off is skipped, except dmem; failing to set any other is an error. In v1 the attempt gets a group for
 * the CPUs without a limit, too: it has one share of them then, as in v2.
 */
int limits_apply(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, struct error *err);

/*
 * Applies memory_limit and cpu_milli of `spec`, which are those of this step alone, below the limits of its
 * attempt. `attempt` and `cell` are its directories in v2, NULL without them. Sets job_cgroup to the cell if
 * that has a limit, and replaces v1_cgroups and memory_cgroup. A controller that is off is skipped.
 */
int limits_apply_step(struct limits *limits, const struct spool_id *id, const char *attempt, const char *cell,
    struct launch_spec *spec, struct error *err);

/* Removes the step's v1 groups. One with a process stays, and goes with those of the attempt. */
void limits_remove_step(struct limits *limits, const struct spool_id *id);

/* Removes the attempt's v1 groups. -EBUSY while a process is in one. */
int limits_remove(struct limits *limits, const struct spool_id *id);

/* Visits attempts that have v1 groups but no directory below `instance` (NULL: all). */
void limits_list(struct limits *limits, const char *instance, confine_visit_fn *visit, void *arg);

/* "cgroup v2", "cgroup v1", or NULL if it is off. */
const char *limits_how(const struct limits *limits, enum limit_controller controller);

/* The text of the root cgroup's dmem.capacity: regions of device memory that can be limited. NULL: none. */
const char *limits_regions(const struct limits *limits);

/* The reason why it is off, with a hint. */
const struct error *limits_why(const struct limits *limits, enum limit_controller controller);
