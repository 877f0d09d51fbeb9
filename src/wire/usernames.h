/* SPDX-License-Identifier: MIT */
/*
 * Cache of user names and numbers. Other lookups go to the system's user database (wire/directory.h); sizes
 * and times are in wire/limits.h.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct usernames;

struct usernames *usernames_new(void);
void usernames_free(struct usernames *names);

/* The name of a user, or the number as text if it has none. Valid until the next call. */
const char *usernames_name(struct usernames *names, uint32_t uid);

/* The same, but NULL for a uid without a name, and no older than the answers of wire/directory.h: for
 * decisions. */
const char *usernames_known(struct usernames *names, uint32_t uid);

/* The uid of the user `name` (may also be a number); -ENOENT or -EAGAIN (wire/directory.h) with a
 * sentence. */
int usernames_uid(struct usernames *names, const char *name, uint32_t *ret_uid, struct error *err);

/* The user's primary group and home directory (which the caller frees); either may be NULL. -ENOENT,
 * -EAGAIN. */
int usernames_account(uint32_t uid, uint32_t *ret_gid, char **ret_home);
