/* SPDX-License-Identifier: MIT */
#include "agent/host/job_user.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/memory.h"

/* An instance may run as a user without an entry in the user database, such as root in a container without
 * one. */
static void make_own_user(uid_t uid, struct user *ret)
{
    const char *home = getenv("HOME");
    *ret = (struct user){ .uid = uid,
        .gid = getegid(),
        .name = xasprintf("%u", uid),
        .home = xstrdup(home != NULL ? home : "/"),
        .shell = xstrdup("/bin/sh") };
}

int job_user_check(const struct job_users *users, uid_t uid, struct error *err)
{
    if (!users->is_root && uid != geteuid())
        return error_set(
            err, -EPERM, "this instance belongs to uid %u and cannot act as uid %u", geteuid(), uid);
    if (users->is_root && uid == 0 && !users->is_root_job_allowed) {
        (void)error_set(err, -EPERM,
            "jobs of root are not allowed on node %s: its mgpu-agent was started without --allow-root-jobs",
            users->node);
        return error_hint(err, "submit as a normal user");
    }
    return 0;
}

int job_user_check_adopted(const struct job_users *users, uid_t uid, struct error *err)
{
    return !users->is_root && users->adopts_any_user ? 0 : job_user_check(users, uid, err);
}

/* An adopted process may belong to a service, since nothing is started as its owner. */
static int check_min_uid(const struct job_users *users, uid_t uid, struct error *err)
{
    if (!users->is_root || uid == 0 || uid >= users->min_uid)
        return 0;
    (void)error_set(err, -EPERM, "uid %u is a system account, and node %s runs jobs of uid %u and above", uid,
        users->node, users->min_uid);
    return error_hint(
        err, "submit as an ordinary user, or start mgpud and mgpu-agent with a lower --min-uid");
}

int job_user_find(
    const struct job_users *users, uid_t uid, const char *name, struct user *ret, struct error *err)
{
    _cleanup_user_ struct user user = { 0 };
    int r = job_user_check(users, uid, err);
    if (r == 0)
        r = check_min_uid(users, uid, err);
    if (r < 0)
        return r;
    struct error why = { 0 }; // kept apart: a user without an entry is no error for a user's own instance
    int found = user_lookup(uid, &user, &why);
    if (found == 0 || found == -ENOENT)
        r = name != NULL && !users->is_number_enough // user.name is NULL if the uid has no name
                ? user_check_name(uid, name, user.name, users->node, err)
                : 0;
    if (r < 0)
        return r;
    if (found < 0 && (found != -ENOENT || uid != geteuid())) {
        if (err != NULL)
            *err = why;
        return found;
    }
    if (found == -ENOENT)
        make_own_user(uid, &user);
    *ret = user;
    user = (struct user){ 0 };
    return 0;
}

int job_user_become(const struct user *user, gid_t gid, struct error *err)
{
    uid_t real, effective, saved;
    if (geteuid() != 0)
        return geteuid() == user->uid
                   ? 0
                   : error_set(err, -EPERM, "uid %u cannot become user %s", geteuid(), user->name);
    gid = user_is_member(user, gid) ? gid : user->gid;
    if (setgroups(user->n_groups, user->groups) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(user->uid, user->uid, user->uid) < 0)
        return error_set_errno(err, -errno, "cannot become user %s", user->name);
    if (getresuid(&real, &effective, &saved) < 0 || real != user->uid || effective != user->uid ||
        saved != user->uid || (user->uid != 0 && setreuid((uid_t)-1, 0) == 0))
        return error_set(err, -EPERM, "cannot become user %s: root could be regained", user->name);
    (void)prctl(PR_SET_DUMPABLE, 0); // regardless of fs.suid_dumpable: it has root's memory and descriptors
    return 0;
}
