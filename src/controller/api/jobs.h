/* SPDX-License-Identifier: MIT */
/* Shared by the routes about one job: finding and showing it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "controller/http/request.h"

typedef void (*jobs_found_fn)(struct request *request, const struct job *job);

/*
 * Finds a job in memory (`on_found` is then called at once) or in the store. Answers 404 itself if it does
 * not exist. The job is valid only during `on_found`.
 */
void jobs_find(struct request *request, uint64_t id, jobs_found_fn on_found);

/* Its resource usage, also for a job read from the store; NULL: not measured. */
const struct job_usage *jobs_usage(const struct serve *serve, const struct job *job);

/* Optional members of a job's object: the position of a waiting job; why it waits and when it starts, which
 * requires a look at the cluster. SPARSE omits members that are null; ACCEPTED, what is known besides the job
 * itself, which may have gone on since. */
enum jobs_shown {
    SHOW_JOB = 0,
    SHOW_POSITION = 1,
    SHOW_WHY = 2,
    SHOW_QUEUE = SHOW_POSITION | SHOW_WHY,
    SHOW_SPARSE = 4,
    SHOW_ACCEPTED = 8
};

/* The job's object. `shown`: bits of enum jobs_shown. */
json_t *jobs_write(struct serve *serve, const struct job *job, unsigned shown);

/* The same as text, for lists. */
void jobs_append(struct serve *serve, const struct job *job, unsigned shown, struct buffer *out);

/* jobs_write, sent when the state is durable. */
void jobs_reply(struct request *request, unsigned status, const struct job *job);

/* For on_answer of a change of request->job: answers with the resulting job, or the problem. */
void jobs_on_changed(struct request *request, const struct core_answer *answer);

/* The name of the job's owner. Valid until the next call. */
const char *jobs_owner(const struct serve *serve, const struct job *job);

/* True if the caller may do this with the job; else answers 403. `what` completes "may not ...". */
bool jobs_check(struct request *request, enum action action, const struct job *job, const char *what);

/* Parses a comma-separated list of the API's states into bits of states (1U << JOB_QUEUED, ...) and of end
 * states (1U << OVER_DONE, ...). */
enum jobs_over { OVER_DONE, OVER_FAILED, OVER_CANCELLED };
int jobs_parse_states(const char *text, uint32_t *ret_states, uint32_t *ret_over, struct error *err);

/* The user of a filter, by name or number. */
int jobs_parse_user(struct request *request, const char *text, uint32_t *ret_uid, struct error *err);

/* The end state of a job in JOB_DONE, as a bit. */
uint32_t jobs_over_bit(const struct job *job);
