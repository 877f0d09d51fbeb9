/* SPDX-License-Identifier: MIT */
/* Kept small: this code runs as root. */
#include "controller/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capabilities.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/sandbox.h"
#include "base/sandbox_files.h"
#include "base/strings.h"

/* As an administrator would; useradd creates the group of the same name. */
static void create_user(const char *name)
{
    static const char *const words[] = { "useradd", "--system", "--no-create-home", "--home-dir",
        "/nonexistent", "--shell", "/usr/sbin/nologin", "--" };
    _cleanup_strings_ struct strings command = { 0 };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        strings_add(&command, words[i]);
    strings_add(&command, name);
    pid_t pid;
    int status = 0;
    if (posix_spawnp(&pid, command.items[0], NULL, NULL, command.items, environ) != 0)
        return;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        log_info("created the system user %s, which mgpud runs as", name);
}

int privileges_find_user(
    const char *name, bool is_root, bool may_create, struct user_ids *ret, struct error *err)
{
    if (!is_root) {
        *ret = (struct user_ids){ .uid = getuid(), .gid = getgid() };
        return 0;
    }
    int64_t number;
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (user == NULL && may_create) {
        create_user(name);
        user = getpwnam(name);
    }
    if (user == NULL && parse_integer(name, "--user", 1, UINT32_MAX - 1, &number, NULL) == 0) {
        *ret = (struct user_ids){ .uid = (uid_t)number, .gid = (gid_t)number };
        return 0; // in a container, numbers may have no names
    }
    if (user == NULL) {
        (void)error_set(err, -ENOENT, "the user %s, which mgpud runs as, does not exist", name);
        return error_hint(err, "run useradd --system --no-create-home %s, or use another: --user NAME", name);
    }
    if (user->pw_uid == 0)
        return error_set(err, -EPERM, "mgpud cannot run as root: --user %s is uid 0", name);
    *ret = (struct user_ids){ .uid = user->pw_uid, .gid = user->pw_gid };
    return 0;
}

int privileges_make_directory(const char *path, mode_t mode, struct user_ids owner, struct error *err)
{
    _cleanup_free_ char *parent = xstrdup(path);
    char *slash = strrchr(parent, '/');
    if (slash != NULL && slash != parent) {
        *slash = '\0';
        int r = make_directories(parent, 0755);
        if (r < 0)
            return error_set_errno(err, r, "cannot create %s", parent);
    }
    bool is_new = mkdir(path, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s", path);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot open the directory %s", path);
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(err, -errno, "cannot inspect %s", path);
    if (status.st_uid != geteuid() && status.st_uid != owner.uid)
        return error_set(
            err, -EPERM, "%s belongs to uid %u, not to this user or uid %u", path, status.st_uid, owner.uid);
    if (!is_new && (status.st_mode & 0022) != 0)
        return error_set(
            err, -EPERM, "%s is writable by other users (mode %04o)", path, status.st_mode & 07777);
    if (geteuid() == 0 && fchown(fd, owner.uid, owner.gid) < 0)
        return error_set_errno(err, -errno, "cannot give %s to uid %u", path, owner.uid);
    if (fchmod(fd, mode) < 0)
        return error_set_errno(err, -errno, "cannot set the mode of %s", path);
    return 0;
}

/* A change of uid clears the death signal that the parent requested (`scheduler start` and others,
 * compat/feed/daemon.c). It is set again; if the parent has died in between, the signal is sent now. */
static void keep_death_signal(int number, pid_t parent)
{
    if (number == 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, number);
    if (getppid() != parent)
        (void)raise(number);
}

int privileges_drop(struct user_ids user, bool is_root, struct error *err)
{
    int death_signal = 0;
    pid_t parent = getppid();
    if (!is_root)
        return 0;
    (void)prctl(PR_GET_PDEATHSIG, &death_signal);
    capabilities_bound(0); // jobs do not inherit this: the agent is another process
    if (setgroups(0, NULL) < 0 || setresgid(user.gid, user.gid, user.gid) < 0 ||
        setresuid(user.uid, user.uid, user.uid) < 0)
        return error_set_errno(err, -errno, "cannot switch to uid %u", user.uid);
    if (setreuid((uid_t)-1, 0) == 0 || getgroups(0, NULL) != 0 || geteuid() != user.uid ||
        getegid() != user.gid)
        return error_set(err, -EPERM, "uid %u still has root privileges", user.uid);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_set_errno(err, -errno, "cannot drop privileges");
    keep_death_signal(death_signal, parent);
    return 0;
}

void privileges_limit_files(const char *store_dir, const char *run_dir)
{
    const char *const paths[] = { store_dir, run_dir, "/dev/null" };
    struct error err = { 0 };
    int r = sandbox_limit_changes(paths, sizeof(paths) / sizeof(paths[0]), &err);
    if (r < 0 && r != -ENOTSUP)
        log_warning("%s: mgpud can change all files of its user", err.message);
}

void privileges_limit_calls(void)
{
    struct error err = { 0 };
    if (sandbox_enter(false, &err) < 0)
        log_warning("%s: mgpud runs without a filter of system calls", err.message);
}
