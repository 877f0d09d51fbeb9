/* SPDX-License-Identifier: MIT */
/*
 * Answers of the user database, kept for the jobs that start right after. An answer is used again for at most
 * USER_CACHE_MS, and only while /etc/passwd, /etc/group and /etc/nsswitch.conf are unchanged: a change to the
 * node's own files applies to the next job, a change to a directory service after that time. Failures are
 * never kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "agent/host/users.h"

#define USER_CACHE_MS    5000
#define USER_CACHE_FILES 3U

struct user_cache;

/* The time of a lookup, and the state of the files before it. */
struct user_stamp {
    int64_t boot_ms;
    struct stat files[USER_CACHE_FILES]; // zeros if there is none
};

/* `directory` of the files, "/etc". */
struct user_cache *user_cache_new(const char *directory);
void user_cache_free(struct user_cache *cache);

/* Take it before the lookup, because the files may change meanwhile. */
struct user_stamp user_cache_stamp(const struct user_cache *cache, int64_t boot_ms);

/* True if the files were the same when both were taken. */
bool user_stamp_is_same(const struct user_stamp *a, const struct user_stamp *b);

/* `name` and `logs` are those of the question (agent/host/user_resolver.h), or NULL. The caller clears *ret.
 */
bool user_cache_find(struct user_cache *cache, int64_t boot_ms, uid_t uid, const char *name, const char *logs,
    struct user *ret);

/* Discards all answers: a directory created for a user may have been removed. */
void user_cache_forget(struct user_cache *cache);

/* Copies everything. */
void user_cache_add(struct user_cache *cache, const struct user_stamp *stamp, uid_t uid, const char *name,
    const char *logs, const struct user *user);
