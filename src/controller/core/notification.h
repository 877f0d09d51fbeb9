/* SPDX-License-Identifier: MIT */
/* Something that a job tells somebody outside: what is kept of it until it is told, and its words. */
#pragma once

#include <stdint.h>

#include "base/record.h"
#include "base/strings.h"
#include "job/job.h"
#include "job/notify.h"

enum notification_state {
    NOTIFICATION_WAITING, // for its first or its next try
    NOTIFICATION_SENT,
    NOTIFICATION_FAILED,  // given up after the last try
    NOTIFICATION_DROPPED, // never tried: too many, or switched off
};

struct notification {
    uint64_t seq;    // of the event that it tells of
    uint32_t target; // place of `to` among those that the job tells
    uint64_t job;
    uint32_t uid, gid;
    char *user;      // the job's owner at its submit; NULL: not known
    uint32_t event;  // enum notify_event
    char *to;        // as in the request
    char *node;      // where the job's attempt was; NULL: nowhere
    int64_t made_ms; // wall clock
    int64_t due_ms;  // wall clock: its next try
    int64_t over_ms; // wall clock: since when it is not waiting any more
    uint32_t state;  // enum notification_state
    uint32_t tries;
    char *text; // why the last try failed, or it was dropped
    /* What is said. Empty when it is over. */
    char *subject, *body, *json;
    struct strings env;
};

extern const struct record_type notification_record;

/* A new one about the job as it is after this event; `json` is copied and may be NULL. */
struct notification *notification_new(const struct job *job, const struct job_event *event,
    enum notify_event what, uint32_t target, const char *json);
void notification_free(struct notification *notification);

/* Leaves out what was to be said: it is over. */
void notification_shrink(struct notification *notification);

const char *notification_state_name(enum notification_state state);

/* One line: "job 42 (train) done in 2h14m on gpu1". The caller frees it. */
char *notification_subject(const struct job *job, const struct job_event *event, enum notify_event what);
