/* SPDX-License-Identifier: MIT */
/* Submits, and functions shared with other ways to create a job. */
#pragma once

#include "controller/core/core.h"
#include "controller/core/partition.h"

/* Answers a submit whose key was used before. */
bool core_answer_repeated(
    struct core *core, const struct identity *who, const struct job_spec *spec, void *request);
/* The core of core_submit. Returns the job, 0 if it was refused or repeated. */
uint64_t core_accept(struct core *core, const struct identity *who, struct job_spec *spec,
    const struct core_facts *facts, void *request);
/* Its requested time limit, or that of its partitions or the site. */
int64_t core_limit_of(
    const struct core *core, const struct job_ask *ask, const struct core_partition_terms *terms);
/* Could the job run here, according to the scheduler, with this request instead of its own? *ret_gpus: its
 * number of GPUs. `facts` NULL: no data about jobs that are not in memory. */
int core_check_changed(const struct core *core, const struct job *job, const struct job_ask *ask,
    const struct core_facts *facts, uint32_t *ret_gpus, struct error *err);
int core_check_ask(
    const struct core *core, const struct identity *who, const struct job_ask *ask, struct error *err);
/* True if the requested priority counts only among the owner's own jobs, because the caller may not precede
 * other users' jobs. `before`: the previous request, all zero: none. */
bool core_priority_is_own(const struct core *core, const struct identity *who, const struct job_ask *ask,
    const struct job_ask *before);
