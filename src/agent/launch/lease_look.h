/* SPDX-License-Identifier: MIT */
/*
 * Processes for which a lease is wanted, or waits: who they are, and when they are over. The controller asks
 * anew after every HELLO, so nothing of this outlives the agent.
 */
#pragma once

#include <event2/event.h>

#include "agent/gpu/usage_watch.h"
#include "agent/host/job_user.h"
#include "wire/message.h"

#define LEASE_WAITS_MAX 256U // processes that are watched before their turn, each by a descriptor

struct lease_looks;

typedef void(lease_seen_fn)(void *arg, const struct message_process_info *process);

/* `watch` is borrowed. */
struct lease_looks *lease_looks_new(struct event_base *base, const struct job_users *users,
    struct usage_watch *watch, lease_seen_fn *on_seen, void *arg);
void lease_looks_free(struct lease_looks *looks);

/* This lease waits no more. */
void lease_looks_forget(struct lease_looks *looks, uint64_t job);

/* Answers a question by on_seen at once; for a job, when the process is over. */
void lease_looks_take(struct lease_looks *looks, const struct message_inspect *request);
