/* SPDX-License-Identifier: MIT */
/*
 * Looks up users for launches, and creates their log directories, without blocking the agent. The user
 * database may be on another machine and hang (NSS with LDAP, NFS), and so may the log directory. Child
 * processes do the work, one request at a time each; a process that exceeds its time is killed. Results are
 * reused for a few seconds (agent/host/user_cache.h).
 */
#pragma once

#include <event2/event.h>

#include "agent/host/job_user.h"
#include "base/record.h"
#include "base/spool.h"

#define USER_ANSWER_MS 20000 // how long a launch waits for the user database

struct user_resolver;

/* A request to one of the processes, and its result. */
extern const struct record_type user_query_record;
extern const struct record_type user_answer_record;

/* The step's user has been looked up: user_resolver_find() returns the result now. */
typedef void user_resolved_fn(void *arg, const struct spool_id *id);

/* `users` is borrowed. No process is started before the first request. */
struct user_resolver *user_resolver_new(struct event_base *base, const struct job_users *users,
    int64_t answer_ms, user_resolved_fn *on_resolved, void *arg);
void user_resolver_free(struct user_resolver *resolver);

/*
 * Like job_user_find(), for a step. `logs`: a directory in which a directory for the user is created; NULL:
 * none. 0 on the first call: the answer to an earlier request is still valid. -EINPROGRESS: in progress,
 * on_resolved will be called. -ETIMEDOUT: the user database, or that directory, did not respond. Any other
 * result ends the step's request; the next call starts a new one.
 */
int user_resolver_find(struct user_resolver *resolver, const struct spool_id *id, uid_t uid, const char *name,
    const char *logs, struct user *ret, struct error *err);

/* The next request ignores earlier answers. */
void user_resolver_forget(struct user_resolver *resolver);

/* Drops the step's request. No effect if there is none. */
void user_resolver_drop(struct user_resolver *resolver, const struct spool_id *id);
