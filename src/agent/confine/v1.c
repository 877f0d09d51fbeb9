/* SPDX-License-Identifier: MIT */
#include "agent/confine/v1.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "agent/confine/v2.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define MOUNTS         "/sys/fs/cgroup"
#define OWN_CGROUP     "/proc/self/cgroup"
#define OWN_CGROUP_MAX 65536U
#define STEP_PREFIX    "step"

static bool has_type(const char *dir, long type)
{
    struct statfs fs;
    return statfs(dir, &fs) == 0 && fs.f_type == type;
}

static bool is_v1(const char *dir)
{
    return has_type(dir, CGROUP_SUPER_MAGIC);
}

static bool is_named(const char *list, size_t length, const char *name)
{
    size_t wanted = strlen(name);
    for (const char *at = list; at < list + length; at += strcspn(at, ",:") + 1)
        if (strncmp(at, name, wanted) == 0 && (at[wanted] == ',' || at[wanted] == ':'))
            return true;
    return false;
}

/* Lines are "4:memory:/a/b" and "2:cpu,cpuacct:/". The caller frees the path. */
static char *own_group(const char *controller)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, OWN_CGROUP, OWN_CGROUP_MAX, &text) < 0)
        return NULL;
    char *rest = buffer_text(&text);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        const char *list = strchr(line, ':');
        const char *path = list == NULL ? NULL : strchr(list + 1, ':');
        if (path != NULL && is_named(list + 1, (size_t)(path - list - 1), controller))
            return xstrdup(path + 1);
    }
    return NULL;
}

static char *group_path(const char *base, const char *instance, const struct spool_id *id)
{
    return xasprintf("%s/%s.j%" PRIu64 ".%u", base, instance, id->job, id->attempt);
}

bool v1_is_base(const char *base, const char *instance, enum limit_controller kind, struct error *err)
{
    _cleanup_free_ char *probe = xasprintf("%s/%s.probe", base, instance);
    _cleanup_free_ char *file = xasprintf("%s/%s", probe, limit_files_first(HIERARCHY_V1, kind));
    if (!is_v1(base)) {
        (void)error_set(err, -ENOENT, "%s is not a cgroup", base);
        return false;
    }
    if (mkdir(probe, 0755) < 0 && errno != EEXIST) {
        (void)error_set_errno(err, -errno, "cannot create a cgroup in %s", base);
        return false;
    }
    bool is_usable = access(file, W_OK) == 0;
    if (!is_usable)
        (void)error_set_errno(err, -errno, "cannot write %s", file);
    (void)rmdir(probe);
    return is_usable;
}

int v1_find_base(const char *controller, const char *parent, const char *instance, enum limit_controller kind,
    char **ret, struct error *err)
{
    _cleanup_free_ char *mount = xasprintf(MOUNTS "/%s", controller);
    _cleanup_free_ char *own = own_group(controller);
    const char *const groups[] = { parent, own, "/" };
    if (!is_v1(mount) && has_type(MOUNTS, CGROUP2_SUPER_MAGIC)) {
        (void)error_set(err, -ENOSYS, "the %s controller of cgroup v2 needs a cgroup for mgpu", controller);
        return error_hint(err, "%s", v2_delegation());
    }
    if (!is_v1(mount)) {
        (void)error_set(err, -ENOSYS, "this system has no %s controller for mgpu", controller);
        return error_hint(err, "boot with cgroup v2 only: systemd.unified_cgroup_hierarchy=1");
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (groups[i] == NULL)
            continue;
        _cleanup_free_ char *base = xasprintf("%s%s", mount, strcmp(groups[i], "/") == 0 ? "" : groups[i]);
        if (!is_v1(base))
            continue; // a container sees paths of its host
        if (!v1_is_base(base, instance, kind, err))
            return error_hint(err, "run mgpud as root");
        *ret = take_ptr(base);
        return 0;
    }
    return error_set(err, -ENOENT, "%s contains no cgroup of mgpu", mount);
}

char *v1_make(const char *base, const char *instance, const struct spool_id *id, struct error *err)
{
    _cleanup_free_ char *dir = group_path(base, instance, id);
    if (mkdir(dir, 0755) == 0 || errno == EEXIST)
        return take_ptr(dir);
    (void)error_set_errno(err, -errno, "cannot create cgroup %s", dir);
    return NULL;
}

char *v1_step_path(const char *attempt, const struct spool_id *id)
{
    return xasprintf("%s/" STEP_PREFIX "%u.%u", attempt, id->step, id->rank);
}

void v1_remove_step(const char *base, const char *instance, const struct spool_id *id)
{
    _cleanup_free_ char *attempt = group_path(base, instance, id);
    _cleanup_free_ char *dir = v1_step_path(attempt, id);
    (void)rmdir(dir);
}

static void remove_steps(const char *attempt)
{
    DIR *steps = opendir(attempt);
    for (const struct dirent *entry; steps != NULL && (entry = readdir(steps)) != NULL;) {
        _cleanup_free_ char *dir = xasprintf("%s/%s", attempt, entry->d_name);
        if (strncmp(entry->d_name, STEP_PREFIX, strlen(STEP_PREFIX)) == 0)
            (void)rmdir(dir);
    }
    if (steps != NULL)
        (void)closedir(steps);
}

int v1_remove(const char *base, const char *instance, const struct spool_id *id)
{
    _cleanup_free_ char *dir = group_path(base, instance, id);
    if (rmdir(dir) == 0 || errno == ENOENT)
        return 0;
    remove_steps(dir);
    return rmdir(dir) < 0 && errno != ENOENT ? -errno : 0;
}

/* Groups are named by the same numbers as spool directories. */
static bool parse_group(const char *name, const char *instance, struct spool_id *ret)
{
    char spool[SPOOL_NAME_SIZE];
    size_t length = strlen(instance);
    if (strncmp(name, instance, length) != 0 || strncmp(name + length, ".j", 2) != 0)
        return false;
    int n = snprintf(spool, sizeof(spool), "%s.0.0", name + length + 2);
    return n > 0 && n < (int)sizeof(spool) && spool_parse_name(spool, ret);
}

void v1_list(const char *base, const char *instance, v1_visit_fn *visit, void *arg)
{
    DIR *groups = opendir(base);
    if (groups == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(groups)) != NULL;) {
        struct spool_id id;
        if (!parse_group(entry->d_name, instance, &id))
            continue;
        _cleanup_free_ char *dir = xasprintf("%s/%s", base, entry->d_name);
        visit(arg, dir, &id);
    }
    (void)closedir(groups);
}

bool v1_is_populated(const char *dir)
{
    char text[16];
    return limit_files_read(dir, "cgroup.procs", text, sizeof(text)) && text[0] != '\0';
}
