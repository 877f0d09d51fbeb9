/* SPDX-License-Identifier: MIT */
/*
 * What holds the processes of a step together, so that all of them can be counted and ended. Kinds: "cgroup2"
 * (complete: no process leaves) and "none" (the shepherd's own process tree; a process that becomes a daemon
 * is still found, because shepherd and init are subreapers). The shepherd itself works on the step's
 * directory; the agent makes it before a launch and removes it after the end.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/spool.h"
#include "job/launch.h"

struct confine_state; // of one kind; each kind has its own
struct limits;        // agent/confine/limits.h

/* Called with each step that has a cell. */
typedef void confine_visit_fn(void *arg, const struct spool_id *id, bool is_populated);

struct confine {
    const char *name;

    /* Finds out whether this kind works here, for the instance that lives in `run_dir`, and takes it into
     * use. `parent` is the cgroup that a service manager gave for jobs, as in /proc/PID/cgroup, or NULL. On
     * failure `err` says what is missing, with a hint for `mgpu doctor`. */
    int (*open)(const char *run_dir, const char *parent, struct confine_state **ret, struct error *err);

    /* Makes the cell of a step; one that is there already is fine. *ret_job_cgroup: directory for struct
     * launch_spec, which the caller frees, or NULL. *ret_shepherd_fd: directory to clone the shepherd into,
     * owned by the state, or -1. */
    int (*prepare)(struct confine_state *state, const struct spool_id *id, char **ret_job_cgroup,
        int *ret_shepherd_fd, struct error *err);

    /* Limits the attempt of a prepared step to what its spec asks for, and fills in v1_cgroups and
     * memory_cgroup, where its shepherd finds what the kernel counted. Can be repeated. On failure the
     * attempt must not be started. */
    int (*limit)(
        struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err);

    /* False when prepare() has made the attempt's cell anew and limit() was not called since. */
    bool (*is_limited)(const struct confine_state *state, const struct spool_id *id);

    /* What can be limited here. */
    const struct limits *(*limits)(const struct confine_state *state);

    /* 0 when guard() works here; else `err` says why not. */
    int (*can_guard)(struct confine_state *state, struct error *err);

    /* Sees to it that the attempt of the step, whose cell is there, can open no devices but those of
     * spec->devices, from here to its end. 1 when that had to be done, 0 when it was so already. */
    int (*guard)(struct confine_state *state, const struct spool_id *id, const struct launch_spec *spec,
        struct error *err);

    /* 1 when a process of the step lives, 0 when none does (or there is no such cell), negative errno when
     * that cannot be known. "none" never knows: -EOPNOTSUPP. */
    int (*is_populated)(struct confine_state *state, const struct spool_id *id);

    /* Ends every process of the step; returns before they are gone. 0 also when there is no such cell. */
    int (*kill)(struct confine_state *state, const struct spool_id *id);

    /* Removes the cell, and the attempt's and its limits when this was its last step. -EBUSY while a process
     * lives in it; 0 when it is gone already. */
    int (*remove)(struct confine_state *state, const struct spool_id *id);

    /* Visits every cell that exists, also those of agents that died before. `visit` may remove the cell. */
    int (*list)(struct confine_state *state, confine_visit_fn *visit, void *arg);

    /* Leaves all cells as they are; what is empty and would be made again may go. NULL is fine. */
    void (*close)(struct confine_state *state);
};

extern const struct confine confine_cgroup2;
extern const struct confine confine_none;

/* Best first, ended by NULL; the last one always opens. */
extern const struct confine *const confine_kinds[];
