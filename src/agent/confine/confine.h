/* SPDX-License-Identifier: MIT */
/*
 * Confinement: keeps the processes of a step together, so that all of them can be counted and killed. Kinds:
 * "cgroup2" (complete: no process escapes) and "none" (the shepherd's process tree; daemonized processes are
 * still found, because shepherd and init are subreapers). The shepherd itself works on the step's directory;
 * the agent creates it before a launch and removes it after the end.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/spool.h"
#include "job/launch.h"

struct confine_state; // each kind has its own
struct limits;        // agent/confine/limits.h

/* Called for each step that has a cgroup. */
typedef void confine_visit_fn(void *arg, const struct spool_id *id, bool is_populated);

struct confine {
    const char *name;

    /* Checks whether this kind works here for the instance in `run_dir`, and initializes it. `parent` is the
     * cgroup that a service manager delegated for jobs, as in /proc/PID/cgroup, or NULL. On failure `err`
     * names what is missing, with a hint for `mgpu doctor`. */
    int (*open)(const char *run_dir, const char *parent, struct confine_state **ret, struct error *err);

    /* Creates the cgroup of a step, or uses an existing one. *ret_job_cgroup: directory for struct
     * launch_spec, which the caller frees, or NULL. *ret_shepherd_fd: directory to clone the shepherd into,
     * owned by the state, or -1. */
    int (*prepare)(struct confine_state *state, const struct spool_id *id, char **ret_job_cgroup,
        int *ret_shepherd_fd, struct error *err);

    /* Applies the limits of the spec to the attempt of a prepared step, and sets v1_cgroups and
     * memory_cgroup, where the shepherd finds the kernel's counters. Idempotent. On failure the attempt must
     * not be started. */
    int (*limit)(
        struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err);

    /* Limits a step, which is not step 0, below its attempt: limits_apply_step(). */
    int (*limit_step)(
        struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err);

    /* False if prepare() has created the attempt's cgroup and limit() was not called since. */
    bool (*is_limited)(const struct confine_state *state, const struct spool_id *id);

    /* Which resources can be limited here. */
    const struct limits *(*limits)(const struct confine_state *state);

    /* 0 if guard() works here; else `err` has the reason. */
    int (*can_guard)(struct confine_state *state, struct error *err);

    /* Ensures that the attempt of the step, whose cgroup exists, can only open the devices of spec->devices.
     * 1 if a filter was attached, 0 if it was there already. */
    int (*guard)(struct confine_state *state, const struct spool_id *id, const struct launch_spec *spec,
        struct error *err);

    /* 1 if a process of the step is alive, 0 if none is (or there is no such cgroup), a negative errno if
     * unknown. "none" always returns -EOPNOTSUPP. */
    int (*is_populated)(struct confine_state *state, const struct spool_id *id);

    /* Kills all processes of the step; returns before they have ended. 0 also if there is no such cgroup. */
    int (*kill)(struct confine_state *state, const struct spool_id *id);

    /* Removes the step's cgroup, and that of the attempt with its limits if this was its last step. -EBUSY
     * while a process is in it; 0 if it does not exist. */
    int (*remove)(struct confine_state *state, const struct spool_id *id);

    /* Visits every existing cgroup, including those of earlier agents. `visit` may remove it. */
    int (*list)(struct confine_state *state, confine_visit_fn *visit, void *arg);

    /* Leaves all cgroups of steps; empty ones that would be created again may be removed. NULL is allowed. */
    void (*close)(struct confine_state *state);
};

extern const struct confine confine_cgroup2;
extern const struct confine confine_none;

/* In order of preference, terminated by NULL; opening the last one always succeeds. */
extern const struct confine *const confine_kinds[];
