/* SPDX-License-Identifier: MIT */
/*
 * What an attempt may use of its host, enforced by the kernel: memory (-M), CPUs (-c) and the number of its
 * processes. Each controller is used where this system has it: on the attempt's own directory in cgroup v2,
 * or in a flat directory of its own in a v1 hierarchy, which the step's init enters. A controller that is
 * nowhere to be had is off: what it would limit is then only counted by the scheduler.
 */
#pragma once

#include <stdbool.h>

#include "agent/confine/confine.h"
#include "base/error.h"
#include "base/spool.h"
#include "job/launch.h"

enum limit_controller { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU, LIMIT_CPUSET, LIMIT_CONTROLLERS };

struct limits;

/* Looks for v1 hierarchies. `parent` is the cgroup that was given for jobs, or NULL. Never fails: what cannot
 * be used is off. Groups that an earlier agent of the instance in `run_dir` made are found again. */
struct limits *limits_new(const char *run_dir, const char *parent);
void limits_free(struct limits *limits);

/* Takes every controller of v2 into use that can be had for children of the instance's directory. To be
 * called again when that directory was made anew. */
void limits_enable_v2(struct limits *limits, const char *instance);

/*
 * Sets what `spec` asks for (memory_limit, cpu_milli, pids_max) on the attempt and fills in v1_cgroups and
 * memory_cgroup. `attempt` is its directory in v2, NULL without one. Can be repeated. A limit whose
 * controller is off is passed over; one that should hold and cannot be set is an error.
 */
int limits_apply(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, struct error *err);

/* Removes the attempt's v1 groups, whatever was asked for. -EBUSY while a process is in one. */
int limits_remove(struct limits *limits, const struct spool_id *id);

/* Visits attempts that have v1 groups and no directory below `instance` (NULL: all). */
void limits_list(struct limits *limits, const char *instance, confine_visit_fn *visit, void *arg);

/* "cgroup v2", "cgroup v1", or NULL when it is off. */
const char *limits_how(const struct limits *limits, enum limit_controller controller);

/* Why it is off, with a hint. */
const struct error *limits_why(const struct limits *limits, enum limit_controller controller);
