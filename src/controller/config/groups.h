/* SPDX-License-Identifier: MIT */
/* Groups in the system's user database. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "controller/config/options.h"

/* By name, or as a number. -ENOENT. */
int group_find(const char *name, uint32_t *ret, struct error *err);

/* 1 if it is the user's primary group or a supplementary one, else 0; -EAGAIN: the user database does not
 * respond. */
int group_has(uint32_t gid, uint32_t uid);

/*
 * The group whose limits and shares count for the jobs of a user: its primary group if the section `groups`
 * has that, else the first of the section in which it is a member, else its primary group. `gid`, the group
 * of its process, counts if the user database does not know the user, or does not respond.
 */
uint32_t group_that_counts(const struct controller_options *options, uint32_t uid, uint32_t gid);
