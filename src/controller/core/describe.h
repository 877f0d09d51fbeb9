/* SPDX-License-Identifier: MIT */
/* A job in the scheduler's terms. */
#pragma once

#include "controller/core/core.h"
#include "sched/sched.h"

struct description {
    struct sched_job_spec spec;
    struct ask_after *after; // those not done yet, then those that can never come true
    size_t n_open;           // of the first kind
    uint64_t *unknown;       // of these, jobs that nobody knows the end of
    size_t n_unknown;
};

/* `facts` NULL: what is not in memory is unknown, and is waited for. */
int core_describe(const struct core *core, const struct job *job, const struct core_facts *facts,
    struct description *ret, struct error *err);
void description_clear(struct description *description);
bool core_is_ok(const struct job *job); // it is done, with exit status 0
