/* SPDX-License-Identifier: MIT */
/* A notification: the data kept until it is delivered, and its text. */
#pragma once

#include <stdint.h>

#include "base/record.h"
#include "base/strings.h"
#include "job/job.h"
#include "job/notify.h"

enum notification_state {
    NOTIFICATION_WAITING, // for its first or next try
    NOTIFICATION_SENT,
    NOTIFICATION_FAILED,  // given up after the last try
    NOTIFICATION_DROPPED, // never tried: too many, or disabled
};

struct notification {
    uint64_t seq;    // of the event concerned
    uint32_t target; // position of `to` among the job's targets
    uint64_t job;
    uint32_t uid, gid;
    char *user;      // the job's owner at its submit; NULL: unknown
    uint32_t event;  // enum notify_event
    char *to;        // as in the request
    char *node;      // the node of the job's attempt; NULL: none
    int64_t made_ms; // wall clock
    int64_t due_ms;  // wall clock: its next try
    int64_t over_ms; // wall clock: since when it is no longer waiting
    uint32_t state;  // enum notification_state
    uint32_t tries;
    char *text; // why the last try failed, or why it was dropped
    /* The contents. Empty once delivered or given up. */
    char *subject, *body, *json;
    struct strings env;
};

extern const struct record_type notification_record;

/* A new one about the job after this event. `back_ms`: wall clock, the latest return of a job that was
 * parked, or when the GPUs of one that has started are due to such a job; 0: there is none. `json` is copied
 * and may be NULL. */
struct notification *notification_new(const struct job *job, const struct job_event *event,
    enum notify_event what, int64_t back_ms, uint32_t target, const char *json);
void notification_free(struct notification *notification);

/* Frees the contents of a finished notification. */
void notification_shrink(struct notification *notification);

const char *notification_state_name(enum notification_state state);

/* One line: "job 42 (train) done in 2h14m on gpu1". The caller frees it. */
char *notification_subject(
    const struct job *job, const struct job_event *event, enum notify_event what, int64_t back_ms);
