/* SPDX-License-Identifier: MIT */
/*
 * Lookups in the system's user database (getpwnam(3) etc.), which may be on another machine and hang. After
 * directory_start(), lookups run in a thread, and no caller waits longer than DIRECTORY_WAIT_MS. Without it,
 * each lookup runs directly. Answers are cached for a minute, or until /etc/passwd or /etc/group changes.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define DIRECTORY_WAIT_MS 1000

enum directory_kind {
    DIRECTORY_USER,       // by number
    DIRECTORY_USER_NAMED, // by name
    DIRECTORY_MEMBER,     // a user by number, with all groups
    DIRECTORY_GROUP,      // by number
    DIRECTORY_GROUP_NAMED // by name
};

struct directory_entry {
    uint32_t id, gid; // both are the gid for a group
    char *name, *home;
    gid_t *groups; // DIRECTORY_MEMBER
    size_t n_groups;
};

void directory_start(void);

/*
 * Looks up a number or, for the NAMED kinds, a name (the other is ignored). 0, and the caller clears *ret;
 * -ENOENT; or -EAGAIN: the database does not respond, and no earlier answer is cached. After a hang, the
 * thread tries again by itself.
 */
int directory_find(enum directory_kind kind, uint32_t number, const char *name, struct directory_entry *ret);
void directory_entry_clear(struct directory_entry *entry);

#define _cleanup_entry_ __attribute__((cleanup(directory_entry_clear)))
