/* SPDX-License-Identifier: MIT */
/* An operator runs the machine and controls all jobs; output of jobs is visible only to their owners and
 * administrators. */
#include "controller/core/rights.h"

#include <stddef.h>
#include <string.h>

enum permit { NO, OWN, ALL };

static const unsigned char permits[ACTIONS][ROLES] = {
    [ACTION_GREET] = { [ROLE_VIEWER] = ALL, [ROLE_USER] = ALL, [ROLE_OPERATOR] = ALL, [ROLE_ADMIN] = ALL },
    [ACTION_LOOK] = { [ROLE_VIEWER] = ALL, [ROLE_USER] = ALL, [ROLE_OPERATOR] = ALL, [ROLE_ADMIN] = ALL },
    [ACTION_SUBMIT] = { [ROLE_VIEWER] = NO, [ROLE_USER] = OWN, [ROLE_OPERATOR] = OWN, [ROLE_ADMIN] = OWN },
    [ACTION_CONTROL] = { [ROLE_VIEWER] = OWN, [ROLE_USER] = OWN, [ROLE_OPERATOR] = ALL, [ROLE_ADMIN] = ALL },
    [ACTION_READ] = { [ROLE_VIEWER] = OWN, [ROLE_USER] = OWN, [ROLE_OPERATOR] = OWN, [ROLE_ADMIN] = ALL },
    [ACTION_RAISE] = { [ROLE_VIEWER] = NO, [ROLE_USER] = NO, [ROLE_OPERATOR] = ALL, [ROLE_ADMIN] = ALL },
    [ACTION_MANAGE] = { [ROLE_VIEWER] = NO, [ROLE_USER] = NO, [ROLE_OPERATOR] = ALL, [ROLE_ADMIN] = ALL },
    [ACTION_AUDIT] = { [ROLE_VIEWER] = NO, [ROLE_USER] = NO, [ROLE_OPERATOR] = NO, [ROLE_ADMIN] = ALL },
    [ACTION_TOKEN] = { [ROLE_VIEWER] = OWN, [ROLE_USER] = OWN, [ROLE_OPERATOR] = OWN, [ROLE_ADMIN] = ALL },
    [ACTION_ADMIT] = { [ROLE_VIEWER] = NO, [ROLE_USER] = NO, [ROLE_OPERATOR] = NO, [ROLE_ADMIN] = ALL },
    [ACTION_KILL] = { [ROLE_VIEWER] = OWN, [ROLE_USER] = OWN, [ROLE_OPERATOR] = OWN, [ROLE_ADMIN] = ALL },
};

static const char *const role_names[ROLES] = {
    [ROLE_USER] = "user",
    [ROLE_VIEWER] = "viewer",
    [ROLE_OPERATOR] = "operator",
    [ROLE_ADMIN] = "admin",
};

static const struct {
    unsigned any, own_job;
} scopes[ACTIONS] = {
    [ACTION_GREET] = { 0, 0 },
    [ACTION_LOOK] = { SCOPE_READ, SCOPE_READ },
    [ACTION_SUBMIT] = { SCOPE_SUBMIT, SCOPE_SUBMIT },
    [ACTION_CONTROL] = { SCOPE_CONTROL, SCOPE_CONTROL | SCOPE_SUBMIT | SCOPE_JOB },
    [ACTION_READ] = { SCOPE_READ, SCOPE_READ | SCOPE_SUBMIT | SCOPE_JOB },
    [ACTION_RAISE] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_MANAGE] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_AUDIT] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_TOKEN] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_ADMIT] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_KILL] = { SCOPE_CONTROL, SCOPE_CONTROL | SCOPE_SUBMIT | SCOPE_JOB },
};

static const struct {
    enum scope scope;
    const char *name;
} scope_names[] = {
    { SCOPE_READ, "read" },
    { SCOPE_SUBMIT, "submit" },
    { SCOPE_CONTROL, "control" },
    { SCOPE_MANAGE, "manage" },
};

#define SCOPES (sizeof(scope_names) / sizeof(scope_names[0]))

unsigned scope_needed(enum action action, bool is_own_job)
{
    return is_own_job ? scopes[action].own_job : scopes[action].any;
}

const char *scope_name(enum scope scope)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (scope_names[i].scope == scope)
            return scope_names[i].name;
    return NULL;
}

unsigned scope_find(const char *name)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (strcmp(scope_names[i].name, name) == 0)
            return scope_names[i].scope;
    return 0;
}

bool role_permits(enum role role, enum action action, bool is_owner)
{
    unsigned char permit = permits[action][role];
    return permit == ALL || (permit == OWN && is_owner);
}

enum role role_needed(enum action action)
{
    static const enum role rising[] = { ROLE_VIEWER, ROLE_USER, ROLE_OPERATOR };
    for (size_t i = 0; i < sizeof(rising) / sizeof(rising[0]); i++)
        if (role_permits(rising[i], action, true))
            return rising[i];
    return ROLE_ADMIN;
}

const char *role_name(enum role role)
{
    return role < ROLES ? role_names[role] : "unknown";
}

enum role role_find(const char *name)
{
    for (enum role role = 0; role < ROLES; role++)
        if (strcmp(role_names[role], name) == 0)
            return role;
    return ROLES;
}
