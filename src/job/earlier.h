/* SPDX-License-Identifier: MIT */
/*
 * Where the output is of the job's latest attempt that was requeued after it had one. The rest of the record
 * is about the current attempt, and a user may ask for the output of an earlier one: while the job waits to
 * be tried again, or when the next attempt has begun already.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"

struct job;
struct job_event;

struct job_earlier {
    uint32_t attempt;
    struct record_list ranks; // struct job_node, in order of rank: name, and log_path; NULL: it has none
};

extern const struct record_type job_earlier_record;

/* That attempt, as `requeued` describes it; NULL if it had no output. `node`: where its rank 0 was;
 * `log_path`: of rank 0, if its start was reported; both may be NULL. */
struct job_earlier *job_earlier_new(const struct job_event *requeued, const char *node, const char *log_path);
void job_earlier_free(struct job_earlier *earlier);

/* The part of job_apply() for EVENT_REQUEUED, before the job loses its nodes. */
void job_earlier_apply(struct job *job, const struct job_event *requeued);

/* True if no later attempt of the job has output. */
bool job_earlier_is_latest(const struct job *job);

/* Where that attempt had this rank, and its log; NULL: there is no log. */
const struct job_node *job_earlier_rank(const struct job *job, uint32_t rank);
