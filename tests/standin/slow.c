/* SPDX-License-Identifier: MIT */
/*
 * Stands in front of libc: calls that may hang take as long as /mnt/slow says. Its line is a kind, a time in
 * milliseconds and, for the kind "files", the folder below which files are slow:
 *
 *      users 4000          lookups of users, groups and hosts
 *      files 4000 /home    opening, looking at, renaming and removing files, and folders; writing regular
 * files
 *
 * A name relative to a folder counts as below it, and so does an open descriptor.
 *
 * The loop of mgpud, mgpu-agent or mgpu-uplink is the first thread of a process that executed that program.
 * Each slow call from there is a line of /mnt/stalls, because while it lasts nobody is served; threads and
 * children are slow as well, and may be. Calls that libc makes of itself (printf to a stream, realpath's look
 * at each folder) do not pass here.
 */
#undef _FILE_OFFSET_BITS // both open and open64 are here
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CONTROL "/mnt/slow"
#define STALLS  "/mnt/stalls"

struct control {
    char kind[16], folder[256];
    long ms;
};

#define STALLS_FD 500 // above those that a program counts on

static pid_t daemon_pid; // 0: this program is neither
static int stalls_fd = -1;

const char *__asan_default_options(void); // of programs built with it, before which this library is loaded

const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0:detect_leaks=0";
}

/* System calls alone: what is read here is never slow. */
static size_t read_text(const char *path, char *text, size_t size)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    return n > 0 ? (size_t)n : 0;
}

static __attribute__((constructor)) void note_program(void)
{
    char name[32] = "";
    (void)read_text("/proc/self/comm", name, sizeof(name));
    if (strcmp(name, "mgpud\n") != 0 && strcmp(name, "mgpu-agent\n") != 0 && strcmp(name, "exe\n") != 0)
        return;            // mgpu-uplink is executed as mgpu-agent
    daemon_pid = getpid(); // the agent's worker executes /proc/self/exe
    /* Later mgpud can open only its own files for writing. */
    int fd = (int)syscall(SYS_openat, AT_FDCWD, STALLS, O_WRONLY | O_APPEND | O_CLOEXEC);
    stalls_fd = fcntl(fd, F_DUPFD_CLOEXEC, STALLS_FD);
    (void)close(fd);
}

static void record(const char *call, const char *what)
{
    char line[512];
    int length = snprintf(line, sizeof(line), "%d %s %s\n", (int)getpid(), call, what);
    (void)!syscall(SYS_write, stalls_fd, line, (size_t)length);
}

static bool is_slow(const char *kind, const char *path, struct control *control)
{
    char text[320];
    *control = (struct control){ 0 };
    if (read_text(CONTROL, text, sizeof(text)) == 0 ||
        sscanf(text, "%15s %ld %255s", control->kind, &control->ms, control->folder) < 2 ||
        strcmp(control->kind, kind) != 0)
        return false;
    return path == NULL ||
           (control->folder[0] != '\0' && strncmp(path, control->folder, strlen(control->folder)) == 0);
}

/* Where a descriptor leads; "" where it leads to no file. */
static void find_place(int fd, char *ret, size_t size)
{
    char link[64];
    (void)snprintf(link, sizeof(link), fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
}

static void dawdle(const char *kind, const char *path, const char *call)
{
    struct control control;
    int before = errno;
    if (is_slow(kind, path, &control)) {
        if (getpid() == daemon_pid && syscall(SYS_gettid) == daemon_pid)
            record(call, path != NULL ? path : "");
        struct timespec left = { control.ms / 1000, control.ms % 1000 * 1000000 };
        while (nanosleep(&left, &left) < 0)
            ;
    }
    errno = before;
}

static void dawdle_at(int dirfd, const char *path, const char *call)
{
    char whole[PATH_MAX + 1], folder[PATH_MAX / 2];
    int before = errno;
    struct control control;
    if (path != NULL && path[0] == '/') {
        dawdle("files", path, call);
    } else if (is_slow("files", NULL, &control)) { // else nothing is looked up
        find_place(dirfd, folder, sizeof(folder));
        (void)snprintf(whole, sizeof(whole), "%s%s%.2000s", folder,
            path != NULL && path[0] != '\0' ? "/" : "", path != NULL ? path : "");
        errno = before;
        dawdle("files", whole, call);
    }
    errno = before;
}

static void dawdle_fd(int fd, const char *call)
{
    dawdle_at(fd, NULL, call);
}

/* The same function behind this library. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* --- users and hosts --- */

struct passwd *getpwnam(const char *name)
{
    dawdle("users", NULL, "getpwnam");
    return NEXT(getpwnam)(name);
}

struct passwd *getpwuid(uid_t uid)
{
    dawdle("users", NULL, "getpwuid");
    return NEXT(getpwuid)(uid);
}

int getpwnam_r(const char *restrict name, struct passwd *restrict entry, char *restrict text, size_t size,
    struct passwd **restrict ret)
{
    dawdle("users", NULL, "getpwnam_r");
    return NEXT(getpwnam_r)(name, entry, text, size, ret);
}

int getpwuid_r(
    uid_t uid, struct passwd *restrict entry, char *restrict text, size_t size, struct passwd **restrict ret)
{
    dawdle("users", NULL, "getpwuid_r");
    return NEXT(getpwuid_r)(uid, entry, text, size, ret);
}

struct group *getgrnam(const char *name)
{
    dawdle("users", NULL, "getgrnam");
    return NEXT(getgrnam)(name);
}

struct group *getgrgid(gid_t gid)
{
    dawdle("users", NULL, "getgrgid");
    return NEXT(getgrgid)(gid);
}

int initgroups(const char *name, gid_t gid)
{
    dawdle("users", NULL, "initgroups");
    return NEXT(initgroups)(name, gid);
}

int getgrnam_r(const char *restrict name, struct group *restrict entry, char *restrict text, size_t size,
    struct group **restrict ret)
{
    dawdle("users", NULL, "getgrnam_r");
    return NEXT(getgrnam_r)(name, entry, text, size, ret);
}

int getgrgid_r(
    gid_t gid, struct group *restrict entry, char *restrict text, size_t size, struct group **restrict ret)
{
    dawdle("users", NULL, "getgrgid_r");
    return NEXT(getgrgid_r)(gid, entry, text, size, ret);
}

int getgrouplist(const char *name, gid_t gid, gid_t *groups, int *count)
{
    dawdle("users", NULL, "getgrouplist");
    return NEXT(getgrouplist)(name, gid, groups, count);
}

int getaddrinfo(const char *restrict host, const char *restrict port, const struct addrinfo *restrict wanted,
    struct addrinfo **restrict ret)
{
    dawdle("users", NULL, "getaddrinfo");
    return NEXT(getaddrinfo)(host, port, wanted, ret);
}

/* --- files --- */

static mode_t mode_of(int flags, va_list *rest)
{
    bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return has_mode ? va_arg(*rest, mode_t) : 0;
}

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        mode_t mode = mode_of(flags, &rest);                                                                 \
        va_end(rest);                                                                                        \
        dawdle_at(AT_FDCWD, path, #name);                                                                    \
        return NEXT(name)(path, flags, mode);                                                                \
    }
#define OPENAT(name)                                                                                         \
    int name(int dirfd, const char *path, int flags, ...)                                                    \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        mode_t mode = mode_of(flags, &rest);                                                                 \
        va_end(rest);                                                                                        \
        dawdle_at(dirfd, path, #name);                                                                       \
        return NEXT(name)(dirfd, path, flags, mode);                                                         \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* A function whose first argument is a path, or a descriptor and the path from there; it is slow, and then
 * happens. */
#define PATH(type, name, parameters, ...)                                                                    \
    type name parameters                                                                                     \
    {                                                                                                        \
        dawdle_at(AT_FDCWD, path, #name);                                                                    \
        return NEXT(name)(path, ##__VA_ARGS__);                                                              \
    }
#define AT(type, name, parameters, ...)                                                                      \
    type name parameters                                                                                     \
    {                                                                                                        \
        dawdle_at(dirfd, path, #name);                                                                       \
        return NEXT(name)(dirfd, path, ##__VA_ARGS__);                                                       \
    }
#define FD(type, name, parameters, ...)                                                                      \
    type name parameters                                                                                     \
    {                                                                                                        \
        dawdle_fd(fd, #name);                                                                                \
        return NEXT(name)(fd, ##__VA_ARGS__);                                                                \
    }

/* What _FORTIFY_SOURCE makes of calls whose arguments the compiler does not know; no header declares them. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *ret, size_t size, size_t room);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *ret, size_t size, size_t room);
char *__realpath_chk(const char *path, char *ret, size_t room);

PATH(int, __open_2, (const char *path, int flags), flags)
PATH(int, __open64_2, (const char *path, int flags), flags)
AT(int, __openat_2, (int dirfd, const char *path, int flags), flags)
AT(int, __openat64_2, (int dirfd, const char *path, int flags), flags)
PATH(ssize_t, __readlink_chk, (const char *path, char *ret, size_t size, size_t room), ret, size, room)
AT(ssize_t, __readlinkat_chk, (int dirfd, const char *path, char *ret, size_t size, size_t room), ret, size,
    room)
PATH(char *, __realpath_chk, (const char *path, char *ret, size_t room), ret, room)

PATH(int, stat, (const char *restrict path, struct stat *restrict ret), ret)
PATH(int, stat64, (const char *restrict path, struct stat64 *restrict ret), ret)
PATH(int, lstat, (const char *restrict path, struct stat *restrict ret), ret)
PATH(int, lstat64, (const char *restrict path, struct stat64 *restrict ret), ret)
AT(int, fstatat, (int dirfd, const char *restrict path, struct stat *restrict ret, int flags), ret, flags)
AT(int, fstatat64, (int dirfd, const char *restrict path, struct stat64 *restrict ret, int flags), ret, flags)
AT(int, statx, (int dirfd, const char *restrict path, int flags, unsigned mask, struct statx *restrict ret),
    flags, mask, ret)
FD(int, fstat, (int fd, struct stat *ret), ret)
FD(int, fstat64, (int fd, struct stat64 *ret), ret)
PATH(int, statvfs, (const char *restrict path, struct statvfs *restrict ret), ret)
PATH(int, statvfs64, (const char *restrict path, struct statvfs64 *restrict ret), ret)
FD(int, fstatvfs, (int fd, struct statvfs *ret), ret)
FD(int, fstatvfs64, (int fd, struct statvfs64 *ret), ret)
PATH(int, statfs, (const char *path, struct statfs *ret), ret)
PATH(int, statfs64, (const char *path, struct statfs64 *ret), ret)
FD(int, fstatfs, (int fd, struct statfs *ret), ret)
FD(int, fstatfs64, (int fd, struct statfs64 *ret), ret)
PATH(int, access, (const char *path, int mode), mode)
AT(int, faccessat, (int dirfd, const char *path, int mode, int flags), mode, flags)
PATH(ssize_t, readlink, (const char *restrict path, char *restrict ret, size_t size), ret, size)
AT(ssize_t, readlinkat, (int dirfd, const char *restrict path, char *restrict ret, size_t size), ret, size)
PATH(char *, realpath, (const char *restrict path, char *restrict ret), ret)

PATH(int, mkdir, (const char *path, mode_t mode), mode)
AT(int, mkdirat, (int dirfd, const char *path, mode_t mode), mode)
PATH(int, rmdir, (const char *path))
PATH(int, unlink, (const char *path))
AT(int, unlinkat, (int dirfd, const char *path, int flags), flags)
PATH(int, rename, (const char *path, const char *to), to)
AT(int, renameat, (int dirfd, const char *path, int to_fd, const char *to), to_fd, to)
AT(int, renameat2, (int dirfd, const char *path, int to_fd, const char *to, unsigned flags), to_fd, to, flags)
PATH(int, chmod, (const char *path, mode_t mode), mode)
AT(int, fchmodat, (int dirfd, const char *path, mode_t mode, int flags), mode, flags)
PATH(int, chown, (const char *path, uid_t uid, gid_t gid), uid, gid)
AT(int, fchownat, (int dirfd, const char *path, uid_t uid, gid_t gid, int flags), uid, gid, flags)
PATH(int, chdir, (const char *path))
FD(int, fchdir, (int fd))
PATH(DIR *, opendir, (const char *path))
FD(DIR *, fdopendir, (int fd))

PATH(FILE *, fopen, (const char *restrict path, const char *restrict mode), mode)
PATH(FILE *, fopen64, (const char *restrict path, const char *restrict mode), mode)
FD(ssize_t, write, (int fd, const void *bytes, size_t length), bytes, length)
FD(int, fsync, (int fd))
FD(int, fdatasync, (int fd))
FD(int, ftruncate, (int fd, off_t length), length)
FD(int, ftruncate64, (int fd, off64_t length), length)
