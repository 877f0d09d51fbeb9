/* SPDX-License-Identifier: MIT */
/*
 * No confinement: for hosts without cgroup v2 and for users who may not make cgroups. It shows the whole
 * contract of confine.h with nothing behind it.
 *
 * What still holds: the user's init and the shepherd are subreapers, so a daemon that the job leaves behind
 * is found among their children and killed. What does not: if both are killed with SIGKILL, such daemons are
 * lost from sight; and a fork bomb is killed process by process.
 */
#include "agent/confine.h"

#include <errno.h>
#include <stddef.h>

struct confine_state {
    char unused;
};

static struct confine_state nothing;

static int none_open(const char *run_dir, const char *parent, struct confine_state **ret, struct error *err)
{
    *ret = &nothing;
    return 0;
}

static int none_prepare(struct confine_state *state, const struct spool_id *id, char **ret_job_cgroup,
    int *ret_shepherd_fd, struct error *err)
{
    *ret_job_cgroup = NULL;
    *ret_shepherd_fd = -1;
    return 0;
}

/* The shepherd knows; an agent asks for its lock and reads the exit record. */
static int none_is_populated(struct confine_state *state, const struct spool_id *id)
{
    return -EOPNOTSUPP;
}

static int none_kill(struct confine_state *state, const struct spool_id *id)
{
    return 0;
}

static int none_remove(struct confine_state *state, const struct spool_id *id)
{
    return 0;
}

static int none_list(struct confine_state *state, confine_visit_fn *visit, void *arg)
{
    return 0;
}

static void none_close(struct confine_state *state)
{
}

const struct confine confine_none = {
    .name = "none",
    .open = none_open,
    .prepare = none_prepare,
    .is_populated = none_is_populated,
    .kill = none_kill,
    .remove = none_remove,
    .list = none_list,
    .close = none_close,
};

const struct confine *const confine_kinds[] = { &confine_cgroup2, &confine_none, NULL };
