/* SPDX-License-Identifier: MIT */
/*
 * The order matters: groups while still root, uid last. Afterwards the kernel is queried whether all of it
 * took effect, because a process that remained root by mistake would run the user's command as root.
 */
#include "shepherd/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

_Static_assert(sizeof(struct group_id) == sizeof(gid_t), "the group list is handed to the kernel as it is");

static int fail(enum launch_step *ret_step, enum launch_step step, int error)
{
    *ret_step = step;
    return -error;
}

static int compare_gids(const void *a, const void *b)
{
    gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;
    return (x > y) - (x < y);
}

/* True if the kernel's list has exactly the requested groups. */
static bool has_groups(const struct record_list *asked)
{
    int count = getgroups(0, NULL);
    if (count < 0 || (size_t)count != asked->count)
        return false;
    if (count == 0)
        return true;
    _cleanup_free_ gid_t *have = xcalloc(asked->count, sizeof(gid_t));
    _cleanup_free_ gid_t *want = xcalloc(asked->count, sizeof(gid_t));
    if (getgroups(count, have) != count)
        return false;
    memcpy(want, asked->items, asked->count * sizeof(gid_t));
    qsort(have, asked->count, sizeof(gid_t), compare_gids);
    qsort(want, asked->count, sizeof(gid_t), compare_gids);
    return memcmp(have, want, asked->count * sizeof(gid_t)) == 0;
}

static bool has_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };
    if (syscall(SYS_capget, &header, sets) < 0)
        return true;
    return (sets[0].effective | sets[0].permitted | sets[1].effective | sets[1].permitted) != 0;
}

static bool is_proved(const struct launch_spec *spec)
{
    uid_t ruid, euid, suid;
    gid_t rgid, egid, sgid;
    if (getresuid(&ruid, &euid, &suid) < 0 || ruid != spec->uid || euid != spec->uid || suid != spec->uid)
        return false;
    if (getresgid(&rgid, &egid, &sgid) < 0 || rgid != spec->gid || egid != spec->gid || sgid != spec->gid)
        return false;
    if (!has_groups(&spec->groups))
        return false;
    if (spec->uid == 0)
        return true;
    /* It must be impossible to regain root. */
    return setreuid((uid_t)-1, 0) < 0 && (spec->gid == 0 || setregid((gid_t)-1, 0) < 0) &&
           !has_capabilities();
}

/* Allows as many open descriptors as the spec permits or this process may have, until user_limit_files(). */
static int raise_files(const struct launch_spec *spec)
{
    if (spec->nofile_soft == 0 && spec->nofile_hard == 0)
        return 0;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    if (spec->nofile_hard > limit.rlim_max)
        limit.rlim_max = spec->nofile_hard;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

int user_limit_files(const struct launch_spec *spec)
{
    struct rlimit limit;
    if (spec->nofile_soft == 0 && spec->nofile_hard == 0)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    if (spec->nofile_hard != 0)
        limit.rlim_max = spec->nofile_hard;
    limit.rlim_cur =
        spec->nofile_soft != 0 && spec->nofile_soft < limit.rlim_max ? spec->nofile_soft : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* Raising a hard limit requires CAP_SYS_RESOURCE, which root in a container may lack. The limit is then left
 * unchanged. */
static int set_other_limits(const struct launch_spec *spec)
{
    const struct launch_limit *limits = spec->limits.items;
    for (size_t i = 0; i < spec->limits.count; i++) {
        struct rlimit limit = { .rlim_cur = limits[i].soft, .rlim_max = limits[i].hard }, now;
        if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) == 0)
            continue;
        if (errno != EPERM || getrlimit((__rlimit_resource_t)limits[i].resource, &now) < 0)
            return -errno;
        limit.rlim_max = limit.rlim_max > now.rlim_max ? now.rlim_max : limit.rlim_max;
        limit.rlim_cur = limit.rlim_cur > limit.rlim_max ? limit.rlim_max : limit.rlim_cur;
        if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) < 0)
            return -errno;
    }
    return 0;
}

int user_become(const struct launch_spec *spec, enum launch_step *ret_step)
{
    int r = raise_files(spec);
    if (r == 0)
        r = set_other_limits(spec);
    if (r < 0)
        return fail(ret_step, STEP_LIMITS, -r);
    (void)umask(spec->umask & 0777);
    if (spec->has_no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(ret_step, STEP_PROOF, errno);
    if (geteuid() != 0)
        return spec->uid == geteuid() ? 0 : fail(ret_step, STEP_UID, EPERM);
    if (setgroups(spec->groups.count, spec->groups.items) < 0)
        return fail(ret_step, STEP_GROUPS, errno);
    if (setresgid(spec->gid, spec->gid, spec->gid) < 0)
        return fail(ret_step, STEP_GID, errno);
    if (setresuid(spec->uid, spec->uid, spec->uid) < 0)
        return fail(ret_step, STEP_UID, errno);
    return is_proved(spec) ? 0 : fail(ret_step, STEP_PROOF, EPERM);
}
