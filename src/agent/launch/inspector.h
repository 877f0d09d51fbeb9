/* SPDX-License-Identifier: MIT */
/*
 * Processes that are to be adopted, or whose adoption waits: their facts, and their ends. The controller asks
 * again after every HELLO, so nothing of this outlives the agent.
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

/* This adoption does not wait any more. */
void inspector_forget(struct inspector *looks, uint64_t job);

/* Answers a question through on_seen at once; for a job, when the process has ended. */
void inspector_take(struct inspector *looks, const struct message_inspect *request);
