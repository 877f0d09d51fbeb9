/* SPDX-License-Identifier: MIT */
/* The user of a uid on this node: name, home, shell and all groups, from the node's own databases. */
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
    gid_t *groups; // all groups, including the primary one
    size_t n_groups;
};

/* Looks up the uid. -ENOENT if the node does not have it. The caller clears *ret. */
int user_lookup(uid_t uid, struct user *ret, struct error *err);

/* Checks that `uid` on this node is the user called `name` on the controller. `found` is its name here, NULL:
 * it has none. -EPERM, with both names or numbers, if it is another user; 0 also if this node has neither the
 * number nor the name. If both names are equal, no database is queried. */
int user_check_name(uid_t uid, const char *name, const char *found, const char *node, struct error *err);

/* True when `gid` is one of the user's groups. */
bool user_is_member(const struct user *user, gid_t gid);

void user_clear(struct user *user);

#define _cleanup_user_ __attribute__((cleanup(user_clear)))
