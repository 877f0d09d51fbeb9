/* SPDX-License-Identifier: MIT */
/* Permissions: the only table of what each role may do. roles.h determines the role of a user. */
#pragma once

#include <stdbool.h>

enum role {
    ROLE_USER, // the default
    ROLE_VIEWER,
    ROLE_OPERATOR,
    ROLE_ADMIN,
    ROLES,
};

enum action {
    ACTION_GREET,   // version, limits, health: also for unknown callers
    ACTION_LOOK,    // lists of jobs, GPUs, nodes, users; why a job waits
    ACTION_SUBMIT,  // a job, owned by the caller
    ACTION_CONTROL, // a job: cancel, hold, release, edit, signal, suspend, continue, requeue
    ACTION_READ,    // the output of a job
    ACTION_RAISE,   // set a priority that counts against the jobs of all users
    ACTION_MANAGE,  // GPUs and nodes: pause, drain, resume; reservations
    ACTION_AUDIT,   // the journal: the actions of all users
    ACTION_TOKEN,   // list and revoke tokens; everyone creates only their own
    ACTION_ADMIT,   // admit machines as nodes
    ACTION_KILL,    // kill the process of an adoption, which mgpu did not start
    ACTIONS,
};

/* `is_owner`: the job concerned belongs to the caller; true without a job. */
bool role_permits(enum role role, enum action action, bool is_owner);

/* The lowest role that permits it, without a job or for the owner of the job. */
enum role role_needed(enum action action);

const char *role_name(enum role role);
enum role role_find(const char *name); // ROLES if there is no such name
