/* SPDX-License-Identifier: MIT */
/* What is done while mgpud is still root, and how it stops being root. Rootless starts use the same calls. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct user_ids {
    uid_t uid;
    gid_t gid;
};

/* Ids of the user to become; rootless: our own. With `may_create` a system user of that name is made where
 * there is none. */
int privileges_find_user(
    const char *name, bool is_root, bool may_create, struct user_ids *ret, struct error *err);

/* Makes DIR (and its parents 0755) with this mode and owner, or checks that the existing one belongs to root
 * or us and that nobody else may write to it. Works on the open directory, never on the path a second time.
 */
int privileges_make_directory(const char *path, mode_t mode, struct user_ids owner, struct error *err);

/* Gives root up for good and proves it. Harmless when rootless. */
int privileges_drop(struct user_ids user, bool is_root, struct error *err);
