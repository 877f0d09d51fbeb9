/* SPDX-License-Identifier: MIT */
/*
 * User names and numbers, kept for some minutes. A look-up that is not kept asks the system's user database
 * (wire/directory.h); sizes and times are in wire/limits.h.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct usernames;

struct usernames *usernames_new(void);
void usernames_free(struct usernames *names);

/* The name of a user, or the number as text when it has none. Valid until the next call. */
const char *usernames_name(struct usernames *names, uint32_t uid);

/* The same, but NULL for one that has no name, and no older than the answers of wire/directory.h: for
 * decisions. */
const char *usernames_known(struct usernames *names, uint32_t uid);

/* The number of a user called `name` (or written as a number); -ENOENT or -EAGAIN (wire/directory.h) with a
 * sentence. */
int usernames_uid(struct usernames *names, const char *name, uint32_t *ret_uid, struct error *err);

/* The user's main group and home directory (which the caller frees); either may be NULL. -ENOENT, -EAGAIN. */
int usernames_account(uint32_t uid, uint32_t *ret_gid, char **ret_home);
