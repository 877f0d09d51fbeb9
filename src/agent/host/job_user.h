/* SPDX-License-Identifier: MIT */
/*
 * The user on whose behalf the agent acts for a job on this node. Every order with a uid is checked here,
 * because frames are not trusted: control of mgpud must not give root on its nodes.
 */
#pragma once

#include "agent/host/users.h"

struct job_users {
    bool is_root;             // false: only jobs of the agent's own uid are possible
    bool is_root_job_allowed; // --allow-root-jobs
    bool adopts_any_user;     // --adopt-any-user: other users' processes have GPUs, without root too
    uint32_t min_uid;         // lowest uid of job owners other than root; 0: any
    bool is_number_enough;    // names of users are not compared with those on mgpud's machine
    const char *node;         // its name, for messages
};

/* Checks whether a process of this user may be adopted, which requires no action as that user. -EPERM and a
 * sentence if not. */
int job_user_check_adopted(const struct job_users *users, uid_t uid, struct error *err);

/* Checks whether the agent may act as this user. -EPERM and a sentence if not. */
int job_user_check(const struct job_users *users, uid_t uid, struct error *err);

/*
 * Checks and looks up the user. `name` is the user's name on the controller; NULL: not compared. -EPERM and
 * -ENOENT, with a sentence: permanently impossible for this user; other errors may be temporary. The caller
 * clears *ret.
 */
int job_user_find(
    const struct job_users *users, uid_t uid, const char *name, struct user *ret, struct error *err);

/* Drops root permanently and verifies it. Uses `gid` if the user is a member of it, else the primary group.
 * Without root, the process already has this user's identity. */
int job_user_become(const struct user *user, gid_t gid, struct error *err);
