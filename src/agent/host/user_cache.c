/* SPDX-License-Identifier: MIT */
#include "agent/host/user_cache.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ENTRIES 64U // the oldest is replaced

static const char *const file_names[USER_CACHE_FILES] = { "passwd", "group", "nsswitch.conf" };

struct entry {
    char *name, *logs;
    struct user_stamp stamp;
    struct user user; // name NULL: the entry is free
};

struct user_cache {
    char *directory;
    struct entry entries[ENTRIES];
};

struct user_cache *user_cache_new(const char *directory)
{
    struct user_cache *cache = xcalloc(1, sizeof(*cache));
    cache->directory = xstrdup(directory);
    return cache;
}

static void entry_clear(struct entry *entry)
{
    free(entry->name);
    free(entry->logs);
    user_clear(&entry->user);
    *entry = (struct entry){ 0 };
}

void user_cache_free(struct user_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < ENTRIES; i++)
        entry_clear(&cache->entries[i]);
    free(cache->directory);
    free(cache);
}

struct user_stamp user_cache_stamp(const struct user_cache *cache, int64_t boot_ms)
{
    struct user_stamp stamp = { .boot_ms = boot_ms };
    for (size_t i = 0; i < USER_CACHE_FILES; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", cache->directory, file_names[i]);
        if (n >= (int)sizeof(path) || stat(path, &stamp.files[i]) < 0)
            stamp.files[i] = (struct stat){ 0 };
    }
    return stamp;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool user_stamp_is_same(const struct user_stamp *a, const struct user_stamp *b)
{
    for (size_t i = 0; i < USER_CACHE_FILES; i++)
        if (!is_same_file(&a->files[i], &b->files[i]))
            return false;
    return true;
}

static bool is_fresh(const struct user_stamp *then, const struct user_stamp *now)
{
    return now->boot_ms - then->boot_ms < USER_CACHE_MS && user_stamp_is_same(then, now);
}

static bool is_equal(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static struct entry *find(struct user_cache *cache, uid_t uid, const char *name, const char *logs)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        struct entry *entry = &cache->entries[i];
        if (entry->user.name != NULL && entry->user.uid == uid && is_equal(entry->name, name) &&
            is_equal(entry->logs, logs))
            return entry;
    }
    return NULL;
}

static void user_copy(const struct user *user, struct user *ret)
{
    *ret = *user;
    ret->name = xstrdup(user->name);
    ret->home = xstrdup(user->home);
    ret->shell = xstrdup(user->shell);
    ret->groups = xreallocarray(NULL, user->n_groups + 1, sizeof(gid_t));
    if (user->n_groups > 0)
        memcpy(ret->groups, user->groups, user->n_groups * sizeof(gid_t));
}

bool user_cache_find(struct user_cache *cache, int64_t boot_ms, uid_t uid, const char *name, const char *logs,
    struct user *ret)
{
    struct entry *entry = find(cache, uid, name, logs);
    if (entry == NULL)
        return false;
    const struct user_stamp now = user_cache_stamp(cache, boot_ms);
    if (!is_fresh(&entry->stamp, &now)) {
        entry_clear(entry);
        return false;
    }
    user_copy(&entry->user, ret);
    return true;
}

void user_cache_forget(struct user_cache *cache)
{
    for (size_t i = 0; i < ENTRIES; i++)
        entry_clear(&cache->entries[i]);
}

/* A free entry, or the oldest; a free one has the stamp 0. */
static struct entry *pick(struct user_cache *cache)
{
    struct entry *oldest = &cache->entries[0];
    for (size_t i = 1; i < ENTRIES; i++)
        if (cache->entries[i].stamp.boot_ms < oldest->stamp.boot_ms)
            oldest = &cache->entries[i];
    return oldest;
}

void user_cache_add(struct user_cache *cache, const struct user_stamp *stamp, uid_t uid, const char *name,
    const char *logs, const struct user *user)
{
    struct entry *entry = find(cache, uid, name, logs);
    if (entry == NULL)
        entry = pick(cache);
    entry_clear(entry);
    entry->stamp = *stamp;
    entry->name = name != NULL ? xstrdup(name) : NULL;
    entry->logs = logs != NULL ? xstrdup(logs) : NULL;
    user_copy(user, &entry->user);
}
