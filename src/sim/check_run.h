/* SPDX-License-Identifier: MIT */
/* Runs one case through the real scheduler and says which promise is broken, if one is. */
#pragma once

#include "sched/sched.h"
#include "sim/check_case.h"

/* For tests of the checker itself: may spoil an allocation before the checker sees it, and what the scheduler
 * is told of a job. NULL: does not. */
struct check_spoiler {
    void (*spoil)(void *arg, const int64_t *job, struct allocation *allocation);
    void (*tell)(void *arg, struct sched_job_spec *spec);
    void *arg;
};

/* 0, or -EPROTO with what went wrong and when. `spoiler` may be NULL. */
int check_run(const struct sim_case *of, const struct check_spoiler *spoiler, struct error *err);

/* Cuts a failing case down to one from which no job, event or node can be left out any more. */
void check_shrink(struct sim_case *of, const struct check_spoiler *spoiler);
