/* SPDX-License-Identifier: MIT */
/* Operations of mgpud while it is still root, and dropping root. Rootless starts use the same calls. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct user_ids {
    uid_t uid;
    gid_t gid;
};

/* Ids of the user to run as; rootless: the current user. With `may_create`, creates a system user with that
 * name if there is none. */
int privileges_find_user(
    const char *name, bool is_root, bool may_create, struct user_ids *ret, struct error *err);

/* Creates DIR (and its parents, 0755) with this mode and owner, or checks that an existing one belongs to
 * root or the current user and is not writable by others. Uses the open directory, never the path a second
 * time. */
int privileges_make_directory(const char *path, mode_t mode, struct user_ids owner, struct error *err);

/* Drops root permanently and verifies it. No effect when rootless. */
int privileges_drop(struct user_ids user, bool is_root, struct error *err);

/*
 * From now on mgpud can change only the files in these two directories; open files, such as a log, stay open.
 * To be called before the first thread. Not possible before kernel 5.13.
 */
void privileges_limit_files(const char *store_dir, const char *run_dir);

/* From now on system calls that mgpud never needs fail, execve among them. */
void privileges_limit_calls(void);
