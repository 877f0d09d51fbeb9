/* SPDX-License-Identifier: MIT */
/* Who a uid is on this node: name, home, shell and the whole list of groups, from the node's own databases.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct user {
    uid_t uid;
    gid_t gid; // primary group
    char *name;
    char *home;
    char *shell;
    gid_t *groups; // all of them, the primary one included
    size_t n_groups;
};

/* Looks the uid up. -ENOENT when the node does not know it. The caller clears *ret. */
int user_lookup(uid_t uid, struct user *ret, struct error *err);

/* Is `uid` on this node the user who is called `name` where the job comes from? `found` is what it is called
 * here, NULL: nobody has it. -EPERM, with both names or numbers, when it is another one; 0 also when nobody
 * here has this number or this name. Where both names are the same, no database is asked. */
int user_check_name(uid_t uid, const char *name, const char *found, const char *node, struct error *err);

/* True when `gid` is one of the user's groups. */
bool user_is_member(const struct user *user, gid_t gid);

void user_clear(struct user *user);

#define _cleanup_user_ __attribute__((cleanup(user_clear)))
