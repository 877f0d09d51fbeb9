/* SPDX-License-Identifier: MIT */
/*
 * Landlock (linux/Documentation/userspace-api/landlock.rst). Each version adds rights; those unknown to
 * the running kernel are left out. Headers may be older than the kernel, so later rights are defined
 * here.
 */
#include "base/sandbox_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"

#define RENAME_TO_OTHER_DIRECTORY (1ULL << 13) // LANDLOCK_ACCESS_FS_REFER, from version 2 on
#define TRUNCATE                  (1ULL << 14) // LANDLOCK_ACCESS_FS_TRUNCATE, from version 3 on
#define OF_DIRECTORIES                                                                                       \
    (LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |         \
        LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |           \
        LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |         \
        RENAME_TO_OTHER_DIRECTORY)
#define CHANGES (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | OF_DIRECTORIES)

static uint64_t rights_of_version(long version)
{
    uint64_t rights = CHANGES;
    if (version < 3)
        rights &= ~TRUNCATE;
    if (version < 2)
        rights &= ~RENAME_TO_OTHER_DIRECTORY;
    return rights;
}

static int allow(int rules, const char *path, uint64_t rights, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat found;
    if (fd < 0 || fstat(fd, &found) < 0)
        return error_set_errno(err, -errno, "cannot open %s", path);
    const struct landlock_path_beneath_attr rule = {
        .allowed_access = S_ISDIR(found.st_mode) ? rights : rights & ~OF_DIRECTORIES,
        .parent_fd = fd,
    };
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return error_set_errno(err, -errno, "cannot allow changes of %s", path);
    return 0;
}

int sandbox_limit_changes(const char *const *paths, size_t count, struct error *err)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0)
        return error_set(err, -ENOTSUP, "this kernel has no Landlock");
    const struct landlock_ruleset_attr what = { .handled_access_fs = rights_of_version(version) };
    _cleanup_close_ int rules = (int)syscall(SYS_landlock_create_ruleset, &what, sizeof(what), 0);
    if (rules < 0)
        return error_set_errno(err, -errno, "cannot create rules of Landlock");
    for (size_t i = 0; i < count; i++) {
        int r = allow(rules, paths[i], what.handled_access_fs, err);
        if (r < 0)
            return r;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return error_set_errno(err, -errno, "cannot enter Landlock");
    return 0;
}
