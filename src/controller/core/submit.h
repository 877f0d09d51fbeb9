/* SPDX-License-Identifier: MIT */
/* Submits, and what they have in common with other ways to a job. */
#pragma once

#include "controller/core/core.h"

/* Answers a submit whose key was seen before. */
bool core_answer_repeated(
    struct core *core, const struct identity *who, const struct job_spec *spec, void *request);
/* The inside of core_submit. Returns the job, 0 when it was refused or repeated. */
uint64_t core_accept(struct core *core, const struct identity *who, struct job_spec *spec,
    const struct core_facts *facts, void *request);
/* What it asks for, or what the site has for those that ask for nothing. */
int64_t core_limit_of(const struct core *core, const struct job_ask *ask);
int core_check_ask(
    const struct core *core, const struct identity *who, const struct job_ask *ask, struct error *err);
/* Does the priority that this caller asks for count among the owner's jobs alone? Nobody may go before other
 * users' jobs by a priority that is not theirs to give; `before`: the request until now, all zero: none. */
bool core_priority_is_own(const struct core *core, const struct identity *who, const struct job_ask *ask,
    const struct job_ask *before);
