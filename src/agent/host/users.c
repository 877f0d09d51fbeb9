/* SPDX-License-Identifier: MIT */
/*
 * One lookup through the name service (files, LDAP, ...). Only a launch uses an earlier answer, by the rule
 * of agent/host/user_cache.h: after a user was added to a group or removed from it, the next job has the new
 * groups.
 */
#include "agent/host/users.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/launch.h"

#define ENTRY_BYTES_MAX (1U << 20) // of one passwd entry

static int find_entry(uid_t uid, struct passwd *entry, char **bytes, struct error *err)
{
    for (size_t size = 4096; size <= ENTRY_BYTES_MAX; size *= 2) {
        struct passwd *found = NULL;
        *bytes = xreallocarray(*bytes, size, 1);
        int error = getpwuid_r(uid, entry, *bytes, size, &found);
        if (error == ERANGE)
            continue;
        if (found != NULL)
            return 0;
        /* Name services report "no such user" with different numbers (getpwnam(3)). */
        if (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM)
            return error_set(err, -ENOENT, "unknown user id on this node: %u", uid);
        return error_set_errno(err, -error, "cannot look up uid %u", uid);
    }
    return error_set(err, -E2BIG, "the passwd entry of uid %u is too large", uid);
}

static int compare_gids(const void *a, const void *b)
{
    gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;
    return (x > y) - (x < y);
}

/* Finds all groups, each once. */
static int find_groups(const char *name, gid_t gid, struct user *user, struct error *err)
{
    int count = 64;
    for (;;) {
        int asked = count;
        user->groups = xreallocarray(user->groups, (size_t)count, sizeof(gid_t));
        if (getgrouplist(name, gid, user->groups, &count) >= 0)
            break;
        count = count > asked ? count : asked * 2;
        if (count > (int)LAUNCH_GROUPS_MAX)
            return error_set(err, -E2BIG, "user %s is in more than %u groups", name, LAUNCH_GROUPS_MAX);
    }
    qsort(user->groups, (size_t)count, sizeof(gid_t), compare_gids);
    for (int i = 0; i < count; i++)
        if (user->n_groups == 0 || user->groups[user->n_groups - 1] != user->groups[i])
            user->groups[user->n_groups++] = user->groups[i];
    return 0;
}

int user_lookup(uid_t uid, struct user *ret, struct error *err)
{
    _cleanup_free_ char *bytes = NULL;
    struct passwd entry;
    int r = find_entry(uid, &entry, &bytes, err);
    if (r < 0)
        return r;
    _cleanup_user_ struct user user = { .uid = uid, .gid = entry.pw_gid };
    r = find_groups(entry.pw_name, entry.pw_gid, &user, err);
    if (r < 0)
        return r;
    user.name = xstrdup(entry.pw_name);
    user.home = xstrdup(entry.pw_dir != NULL && entry.pw_dir[0] == '/' ? entry.pw_dir : "/");
    user.shell = xstrdup(entry.pw_shell != NULL && entry.pw_shell[0] == '/' ? entry.pw_shell : "/bin/sh");
    *ret = user;
    user = (struct user){ 0 };
    return 0;
}

/* False if the name does not exist. */
static bool find_uid(const char *name, uid_t *ret)
{
    _cleanup_free_ char *bytes = NULL;
    for (size_t size = 4096; size <= ENTRY_BYTES_MAX; size *= 2) {
        struct passwd entry, *found = NULL;
        bytes = xreallocarray(bytes, size, 1);
        int error = getpwnam_r(name, &entry, bytes, size, &found);
        if (error == ERANGE)
            continue;
        if (found != NULL)
            *ret = found->pw_uid;
        return found != NULL;
    }
    return false;
}

int user_check_name(uid_t uid, const char *name, const char *found, const char *node, struct error *err)
{
    uid_t named = 0;
    if (found != NULL && strcmp(found, name) == 0)
        return 0;
    bool is_known = find_uid(name, &named);
    if (is_known && named == uid)
        return 0;
    if (found != NULL)
        return error_set(err, -EPERM, "on node %s user id %u is %s, not %s", node, uid, found, name);
    if (is_known)
        return error_set(err, -EPERM, "on node %s %s has user id %u, not %u", node, name, named, uid);
    return 0;
}

bool user_is_member(const struct user *user, gid_t gid)
{
    for (size_t i = 0; i < user->n_groups; i++)
        if (user->groups[i] == gid)
            return true;
    return gid == user->gid;
}

void user_clear(struct user *user)
{
    free(user->name);
    free(user->home);
    free(user->shell);
    free(user->groups);
    *user = (struct user){ 0 };
}
