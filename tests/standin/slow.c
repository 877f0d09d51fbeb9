/* SPDX-License-Identifier: MIT */
/*
 * Stands in front of libc: calls that may hang take as long as /mnt/slow says. Its line is a kind, a time in
 * milliseconds and, for the kind "files", the folder below which files are slow:
 *
 *      users 4000          lookups of users, groups and hosts
 *      files 4000 /home    opening, looking at and removing files
 *
 * The loop of mgpud or mgpu-agent is the first thread of a process that executed that program. Each slow call
 * from there is a line of /mnt/stalls, because while it lasts nobody is served; threads and children are slow
 * as well, and may be.
 */
#undef _FILE_OFFSET_BITS // both open and open64 are here
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
        return;
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
    (void)!write(stalls_fd, line, (size_t)length);
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
        dawdle("files", path, #name);                                                                        \
        return NEXT(name)(path, flags, mode);                                                                \
    }
#define OPENAT(name)                                                                                         \
    int name(int dirfd, const char *path, int flags, ...)                                                    \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        mode_t mode = mode_of(flags, &rest);                                                                 \
        va_end(rest);                                                                                        \
        dawdle("files", path, #name);                                                                        \
        return NEXT(name)(dirfd, path, flags, mode);                                                         \
    }
#define STAT(name, type)                                                                                     \
    int name(const char *restrict path, struct type *restrict ret)                                           \
    {                                                                                                        \
        dawdle("files", path, #name);                                                                        \
        return NEXT(name)(path, ret);                                                                        \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    dawdle("files", path, "fopen");
    return NEXT(fopen)(path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    dawdle("files", path, "fopen64");
    return NEXT(fopen64)(path, mode);
}

int access(const char *path, int mode)
{
    dawdle("files", path, "access");
    return NEXT(access)(path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    dawdle("files", path, "mkdir");
    return NEXT(mkdir)(path, mode);
}

int unlink(const char *path)
{
    dawdle("files", path, "unlink");
    return NEXT(unlink)(path);
}

int chdir(const char *path)
{
    dawdle("files", path, "chdir");
    return NEXT(chdir)(path);
}

char *realpath(const char *restrict path, char *restrict ret)
{
    dawdle("files", path, "realpath");
    return NEXT(realpath)(path, ret);
}
