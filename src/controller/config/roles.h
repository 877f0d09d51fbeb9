/* SPDX-License-Identifier: MIT */
/*
 * Roles of users. Root and the user mgpud runs as are administrators; other users get the role set for them
 * or for one of their groups. A rule for the user takes precedence over rules for groups; of several groups,
 * the highest role applies.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "controller/core/rights.h"

struct roles;

/* Adds a rule for the user or the group ("group:NAME") `who`; "others" means all other users. Creates *roles
 * if it is NULL. -ENOENT: no such user or group. */
int roles_add(struct roles **roles, const char *who, enum role role, struct error *err);

/* NULL is allowed: everyone has the role user. For a `uid` that is not an administrator implicitly. Groups
 * are looked up in the system's user database and cached for a minute. */
enum role roles_of(struct roles *roles, uint32_t uid);

void roles_free(struct roles *roles);
