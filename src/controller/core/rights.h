/* SPDX-License-Identifier: MIT */
/* Who may do what: the one table of rights. Who has which role is a matter of roles.h. */
#pragma once

#include <stdbool.h>

enum role {
    ROLE_USER, // anybody of whom nothing else is said
    ROLE_VIEWER,
    ROLE_OPERATOR,
    ROLE_ADMIN,
    ROLES,
};

enum action {
    ACTION_GREET,   // version, limits, health: known or not
    ACTION_LOOK,    // lists of jobs, GPUs, nodes, users; why a job waits
    ACTION_SUBMIT,  // a job of one's own
    ACTION_CONTROL, // a job: cancel, hold, release, edit, signal, suspend, continue, requeue
    ACTION_READ,    // what a job wrote
    ACTION_RAISE,   // give a priority that counts before the jobs of all users
    ACTION_MANAGE,  // GPUs and nodes: pause, drain, resume; reservations
    ACTION_AUDIT,   // the journal: what everybody did
    ACTION_TOKEN,   // tokens: list and revoke them; made only for oneself
    ACTION_ADMIT,   // machines, as nodes
    ACTION_KILL,    // the process of an adoption, which mgpu did not start
    ACTIONS,
};

/* `is_owner`: the job in question is the asker's own; true where there is no job. */
bool role_permits(enum role role, enum action action, bool is_owner);

/* The least role that permits it where there is no job, or to the owner of the job. */
enum role role_needed(enum action action);

const char *role_name(enum role role);
enum role role_find(const char *name); // ROLES when there is none of that name
