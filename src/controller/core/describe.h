/* SPDX-License-Identifier: MIT */
/* Describes a job for the scheduler. */
#pragma once

#include "controller/core/core.h"
#include "sched/sched.h"

struct description {
    struct sched_job_spec spec;
    struct ask_after *after; // those not done yet, then those that can never be satisfied
    size_t n_open;           // number of the former
    uint64_t *unknown;       // those of them whose end is unknown
    size_t n_unknown;
};

/* `facts` NULL: jobs not in memory are unknown and waited for. */
int core_describe(const struct core *core, const struct job *job, const struct core_facts *facts,
    struct description *ret, struct error *err);
void description_clear(struct description *description);
bool core_is_ok(const struct job *job);       // done with exit status 0
int64_t core_began_ms(const struct job *job); // its start, or its end without one; 0: neither
