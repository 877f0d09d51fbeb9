/* SPDX-License-Identifier: MIT */
/*
 * Which users have which role: root and the user that mgpud runs for are administrators, everybody else is
 * what the settings say of him, or of a group that he is in. A rule that names the user himself goes before
 * those of his groups; of several groups the highest role counts.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "controller/core/rights.h"

struct roles;

/* A rule for the user or the group ("group:NAME") called `who`; "others" is everybody else. Makes *roles when
 * it is NULL. -ENOENT: no such user or group. */
int roles_add(struct roles **roles, const char *who, enum role role, struct error *err);

/* NULL is fine: everybody is a user. `uid` is no administrator by himself. Groups are looked up in the
 * system's user database and remembered for a minute. */
enum role roles_of(struct roles *roles, uint32_t uid);

void roles_free(struct roles *roles);
