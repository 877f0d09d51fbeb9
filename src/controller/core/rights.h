/* SPDX-License-Identifier: MIT */
/* Permissions: the only table of the rights of each role. roles.h determines the role of a user. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

/* The part of its user's permissions that a token grants: bits, which are stored on disk. */
enum scope {
    SCOPE_READ = 1,    // view jobs, GPUs, nodes and users, and read the output of jobs
    SCOPE_SUBMIT = 2,  // submit jobs; control, and read the output of, those submitted with this token
    SCOPE_CONTROL = 4, // control all jobs that the user may control
    SCOPE_MANAGE = 8,  // everything else that the user's role permits
    SCOPE_ALL = 15,
    SCOPE_JOB = 16, // of commands in a job, not of tokens: control, and read the output of, that job
};

/* In the place of a token's number: the caller is a command in the job with this number, on a machine that
 * has joined. */
#define JOB_TOKEN (UINT64_C(1) << 62)

static inline bool token_is_of_job(uint64_t token)
{
    return (token & JOB_TOKEN) != 0;
}

/* The scopes, any one of which suffices for this action; 0: none is needed. `is_own_job`: it concerns a job
 * that was submitted with the token, or the job that the caller is a command of. */
unsigned scope_needed(enum action action, bool is_own_job);

const char *scope_name(enum scope scope); // NULL for what is not one scope
unsigned scope_find(const char *name);    // 0 if there is no such name

/* `is_owner`: the job concerned belongs to the caller; true without a job. */
bool role_permits(enum role role, enum action action, bool is_owner);

/* The lowest role that permits it, without a job or for the owner of the job. */
enum role role_needed(enum action action);

const char *role_name(enum role role);
enum role role_find(const char *name); // ROLES if there is no such name
