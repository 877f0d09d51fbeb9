/* SPDX-License-Identifier: MIT */
/*
 * Processes for which an adoption is wanted, or waits: who they are, and when they are over. The controller
 * asks anew after every HELLO, so nothing of this outlives the agent.
 */
#pragma once

#include <event2/event.h>

#include "agent/gpu/usage_watch.h"
#include "agent/host/job_user.h"
#include "wire/message.h"

#define ADOPT_WAITS_MAX 256U // processes watched while their adoption waits, each by a descriptor

struct inspector;

typedef void(inspected_fn)(void *arg, const struct message_process_info *process);

/* `watch` is borrowed. */
struct inspector *inspector_new(struct event_base *base, const struct job_users *users,
    struct usage_watch *watch, inspected_fn *on_seen, void *arg);
void inspector_free(struct inspector *looks);

/* This adoption waits no more. */
void inspector_forget(struct inspector *looks, uint64_t job);

/* Answers a question by on_seen at once; for a job, when the process is over. */
void inspector_take(struct inspector *looks, const struct message_inspect *request);
