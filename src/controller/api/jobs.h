/* SPDX-License-Identifier: MIT */
/* What the routes about one job share: finding it and showing it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "controller/http/request.h"

typedef void (*jobs_found_fn)(struct request *request, const struct job *job);

/*
 * Finds a job in memory (then `on_found` is called at once) or in the store. Answers 404 itself when there is
 * none. The job is valid during the call of `on_found` only.
 */
void jobs_find(struct request *request, uint64_t id, jobs_found_fn on_found);

/* What it makes of what it was given, also of a job read from the store; NULL: nothing was measured. */
const struct job_usage *jobs_usage(const struct serve *serve, const struct job *job);

/* What the object of a job that waits has beside the job: its position; why it waits and when it starts,
 * which costs a look at the cluster; and what any job's lacks: the members that are null. */
enum jobs_shown {
    SHOW_JOB = 0,
    SHOW_POSITION = 1,
    SHOW_WHY = 2,
    SHOW_QUEUE = SHOW_POSITION | SHOW_WHY,
    SHOW_SPARSE = 4
};

/* The job's object. `shown`: bits of enum jobs_shown. */
json_t *jobs_write(struct serve *serve, const struct job *job, unsigned shown);

/* jobs_write, sent when it is durable. */
void jobs_reply(struct request *request, unsigned status, const struct job *job);

/* For on_answer of a change of request->job: the job as it is then, or the problem. */
void jobs_on_changed(struct request *request, const struct core_answer *answer);

/* Whose job it is, as people call its owner. Valid until the next call. */
const char *jobs_owner(const struct serve *serve, const struct job *job);

/* True when the asker may do that with the job; answers 403 itself when not. `what` completes "may not ...".
 */
bool jobs_check(struct request *request, enum action action, const struct job *job, const char *what);

/* Reads a comma-separated list of the API's state words into bits (1U << JOB_QUEUED, ...) and bits of ways to
 * be over (1U << OVER_DONE, ...). */
enum jobs_over { OVER_DONE, OVER_FAILED, OVER_CANCELLED };
int jobs_parse_states(const char *text, uint32_t *ret_states, uint32_t *ret_over, struct error *err);

/* The bit of how a job in state JOB_DONE ended. */
uint32_t jobs_over_bit(const struct job *job);
