/* SPDX-License-Identifier: MIT */
/*
 * No confinement: for hosts without cgroup v2 and for users who cannot create cgroups. It provides only
 * limits, if v1 hierarchies are available for them.
 *
 * The user's init and the shepherd are subreapers, so a daemon that the job leaves running is found among
 * their children and killed. If both are killed with SIGKILL, such daemons are lost. A fork bomb is killed
 * process by process.
 */
#include "agent/confine/confine.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/confine/limits.h"
#include "base/memory.h"

struct confine_state {
    struct limits *limits;
};

static int none_open(const char *run_dir, const char *parent, struct confine_state **ret, struct error *err)
{
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->limits = limits_new(run_dir, parent);
    return 0;
}

static int none_prepare(struct confine_state *state, const struct spool_id *id, char **ret_job_cgroup,
    int *ret_shepherd_fd, struct error *err)
{
    *ret_job_cgroup = NULL;
    *ret_shepherd_fd = -1;
    return 0;
}

static int none_limit(
    struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    return limits_apply(state->limits, id, NULL, spec, err);
}

/* v1 groups stay unchanged. */
static int none_limit_step(
    struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    return limits_apply_step(state->limits, id, NULL, NULL, spec, err);
}

static bool none_is_limited(const struct confine_state *state, const struct spool_id *id)
{
    return true;
}

static const struct limits *none_limits(const struct confine_state *state)
{
    return state->limits;
}

static int none_can_guard(struct confine_state *state, struct error *err)
{
    return error_set(err, -EOPNOTSUPP, "a device filter needs a cgroup");
}

/* Callers check can_guard() first. */
static int none_guard(
    struct confine_state *state, const struct spool_id *id, const struct launch_spec *spec, struct error *err)
{
    return spec->devices.count == 0 ? 0 : none_can_guard(state, err);
}

/* Only the shepherd knows. The agent checks its lock and reads the exit record. */
static int none_is_populated(struct confine_state *state, const struct spool_id *id)
{
    return -EOPNOTSUPP;
}

static int none_kill(struct confine_state *state, const struct spool_id *id)
{
    return 0;
}

/* Processes that the shepherd has lost track of may still be in a group, which the next agent removes. */
static int none_remove(struct confine_state *state, const struct spool_id *id)
{
    if (id->step != 0)
        limits_remove_step(state->limits, id);
    else
        (void)limits_remove(state->limits, id);
    return 0;
}

static int none_list(struct confine_state *state, confine_visit_fn *visit, void *arg)
{
    limits_list(state->limits, NULL, visit, arg);
    return 0;
}

static void none_close(struct confine_state *state)
{
    if (state != NULL)
        limits_free(state->limits);
    free(state);
}

const struct confine confine_none = {
    .name = "none",
    .open = none_open,
    .prepare = none_prepare,
    .limit = none_limit,
    .limit_step = none_limit_step,
    .is_limited = none_is_limited,
    .limits = none_limits,
    .can_guard = none_can_guard,
    .guard = none_guard,
    .is_populated = none_is_populated,
    .kill = none_kill,
    .remove = none_remove,
    .list = none_list,
    .close = none_close,
};

const struct confine *const confine_kinds[] = { &confine_cgroup2, &confine_none, NULL };
