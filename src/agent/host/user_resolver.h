/* SPDX-License-Identifier: MIT */
/*
 * Looks users up for launches, and makes their log directories, without ever blocking the agent: a user
 * database may be on another machine and hang (NSS with LDAP, NFS), and so may the directory of all logs.
 * Processes of the agent's own ask it, one question at a time each; one whose question is not answered in
 * time is killed. An answer is used again for a few seconds (agent/host/user_cache.h).
 */
#pragma once

#include <event2/event.h>

#include "agent/host/job_user.h"
#include "base/spool.h"

#define USER_ANSWER_MS 20000 // how long a launch waits for the user database

struct user_resolver;

/* The step's user has been looked up: user_resolver_find() returns the result now. */
typedef void user_resolved_fn(void *arg, const struct spool_id *id);

/* `users` is borrowed. No process is started before the first request. */
struct user_resolver *user_resolver_new(struct event_base *base, const struct job_users *users,
    int64_t answer_ms, user_resolved_fn *on_resolved, void *arg);
void user_resolver_free(struct user_resolver *resolver);

/*
 * As job_user_find(), on behalf of a step. `logs`: a directory in which the user gets one of his own; NULL:
 * none. 0 on the first call: the answer to an earlier step's question is still valid. -EINPROGRESS: it is
 * being looked up, and on_resolved will be called. -ETIMEDOUT: the user database, or that directory, did not
 * answer. Any other result ends the step's question, so that the next call asks anew.
 */
int user_resolver_find(struct user_resolver *resolver, const struct spool_id *id, uid_t uid, const char *name,
    const char *logs, struct user *ret, struct error *err);

/* Drops the step's request. No effect if there is none. */
void user_resolver_drop(struct user_resolver *resolver, const struct spool_id *id);
