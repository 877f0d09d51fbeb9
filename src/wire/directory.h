/* SPDX-License-Identifier: MIT */
/*
 * The system's user database (getpwnam(3) and its kind), which may be on another machine and hang. Once
 * directory_start() has been called, a thread of its own asks it, and nobody waits for that thread for longer
 * than DIRECTORY_WAIT_MS. Without it, each question is asked directly. Answers are
 * kept for a minute, and no longer than /etc/passwd and /etc/group stay as they are.
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
    uint32_t id, gid; // of a group both are its number
    char *name, *home;
    gid_t *groups; // DIRECTORY_MEMBER
    size_t n_groups;
};

void directory_start(void);

/*
 * Looks up a number, or a name where the kind says so (the other is ignored). 0, and the caller clears *ret;
 * -ENOENT; or -EAGAIN: the database does not answer, and nothing is known from before. After a hang the
 * thread asks again by itself.
 */
int directory_find(enum directory_kind kind, uint32_t number, const char *name, struct directory_entry *ret);
void directory_entry_clear(struct directory_entry *entry);

#define _cleanup_entry_ __attribute__((cleanup(directory_entry_clear)))
