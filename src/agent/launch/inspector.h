/* SPDX-License-Identifier: MIT */
/*
 * Facts about, and ends of, processes to be adopted or whose adoption waits. The controller repeats its
 * requests after every HELLO, so this state need not outlive the agent.
 */
#pragma once

#include <event2/event.h>

#include "agent/gpu/usage_watch.h"
#include "agent/host/job_user.h"
#include "wire/message.h"

#define ADOPT_WAITS_MAX 256U // processes watched for waiting adoptions, one descriptor each

struct inspector;

typedef void(inspected_fn)(void *arg, const struct message_process_info *process);

/* `watch` is borrowed. */
struct inspector *inspector_new(struct event_base *base, const struct job_users *users,
    struct usage_watch *watch, inspected_fn *on_seen, void *arg);
void inspector_free(struct inspector *looks);

/* This adoption no longer waits. */
void inspector_forget(struct inspector *looks, uint64_t job);

/* Answers a request through on_seen immediately; for a job, when the process has ended. */
void inspector_take(struct inspector *looks, const struct message_inspect *request);
