/* SPDX-License-Identifier: MIT */
/* Groups in the system's user database. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* By name, or as a number. -ENOENT. */
int group_find(const char *name, uint32_t *ret, struct error *err);

/* 1 if it is the user's primary group or a supplementary one, else 0; -EAGAIN: the user database does not
 * respond. */
int group_has(uint32_t gid, uint32_t uid);
