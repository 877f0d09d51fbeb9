/* SPDX-License-Identifier: MIT */
/*
 * As whom something of a job is done on this node. Every order that names a uid is decided here, because a
 * frame is not to be trusted: whoever controls mgpud must not become root on its nodes.
 */
#pragma once

#include "agent/host/users.h"

struct job_users {
    bool is_root;             // false: only jobs of our own uid can be served
    bool is_root_job_allowed; // --allow-root-jobs
    bool is_number_enough;    // users are not compared by name with those of mgpud's machine
    const char *node;         // its name, for messages
};

/* May anything be done as this user here? -EPERM and a sentence when not. */
int job_user_check(const struct job_users *users, uid_t uid, struct error *err);

/*
 * Checks and looks the user up. `name` is what the user is called where mgpud is; NULL: not compared. -EPERM
 * and -ENOENT, with a sentence: nothing can ever be done as this user here; other errors may pass. The caller
 * clears *ret.
 */
int job_user_find(
    const struct job_users *users, uid_t uid, const char *name, struct user *ret, struct error *err);

/* Gives root up for good, and proves it. `gid` when the user is a member of it, else the primary group.
 * Without root it is this user already. */
int job_user_become(const struct user *user, gid_t gid, struct error *err);
