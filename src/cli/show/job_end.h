/* SPDX-License-Identifier: MIT */
/* Waits for the end of a job, across restarts of mgpud. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"

#define JOB_END_FOR_EVER INT64_MAX

/* Shows the state of one or several jobs in the meantime. */
struct job_end_news {
    int (*wait_ms)(const void *arg); // time until it needs the object of the job or the list; -1: never again
    void (*on_job)(void *arg, const json_t *object);
    void *arg;
};

/* `id` as in paths of the API. -ETIME after the deadline (boot clock); the caller owns *ret. */
int job_end_await(struct call *call, const char *id, int64_t deadline_ms, json_t **ret, struct error *err);

/* Waits until it has one of these states, "running,done"; `news` may be NULL. */
int job_end_await_printing(struct call *call, const char *id, const char *states, int64_t deadline_ms,
    const struct job_end_news *news, json_t **ret, struct error *err);

/* Until it has ended or waits for another attempt. */
int job_end_await_attempt(struct call *call, const char *id, json_t **ret, struct error *err);
