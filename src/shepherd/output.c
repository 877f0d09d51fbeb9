/* SPDX-License-Identifier: MIT */
/*
 * Everything here runs as the user, in directories that the user and its running jobs may change at any time.
 * Nothing is checked before it is opened: the file is opened without following links or waiting for a FIFO's
 * reader, and then the open file is checked.
 */
#include "shepherd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define OUTPUT_FLAGS (O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static int fail(enum launch_step *ret_step, enum launch_step step, int error)
{
    *ret_step = step;
    return -error;
}

static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static int make_parent(const char *path)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return 0;
    if ((size_t)(slash - path) >= sizeof(parent))
        return -ENAMETOOLONG;
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    if (access(parent, X_OK) == 0)
        return 0;
    return make_directories(parent, 0700);
}

char *output_own_name(const char *path, uint64_t token)
{
    static const char ending[] = ".log";
    size_t length = strlen(path), tail = sizeof(ending) - 1;
    bool has_ending = length > tail && strcmp(path + length - tail, ending) == 0;
    return xasprintf("%.*s-%08x%s", (int)(has_ending ? length - tail : length), path, (unsigned)token,
        has_ending ? ending : "");
}

int output_open(const char *path, enum output_name name, enum launch_step *ret_step)
{
    if (name != OUTPUT_NAMED) {
        int r = make_parent(path);
        if (r < 0)
            return fail(ret_step, STEP_LOG_DIRECTORY, -r);
    }
    /* Instances may share a home directory, even across machines: the one that creates the file owns the
     * name. Output of jobs is private to their user; a file that the user named is created as a shell would
     * create it. */
    int exclusive = name == OUTPUT_DEFAULT ? O_EXCL : 0;
    mode_t mode = name == OUTPUT_NAMED ? 0666 : 0600;
    _cleanup_close_ int fd = open(path, OUTPUT_FLAGS | O_CREAT | exclusive, mode);
    if (fd < 0)
        return fail(ret_step, errno == ENXIO || errno == EISDIR ? STEP_LOG_KIND : STEP_LOG, errno);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fail(ret_step, STEP_LOG, errno);
    if (is_null_device(&st))
        return take_fd(&fd);
    if (!S_ISREG(st.st_mode))
        return fail(ret_step, STEP_LOG_KIND, EINVAL);
    if (st.st_uid != geteuid())
        return fail(ret_step, STEP_LOG_OWNER, EPERM);
    /* The command shares this open file, so its output must not become non-blocking. */
    if (fcntl(fd, F_SETFL, O_APPEND) < 0)
        return fail(ret_step, STEP_LOG, errno);
    return take_fd(&fd);
}
