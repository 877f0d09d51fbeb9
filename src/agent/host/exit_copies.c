/* SPDX-License-Identifier: MIT */
#include "agent/host/exit_copies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "job/launch.h"

#define SUFFIX    ".exit"
#define NAME_SIZE (SPOOL_NAME_SIZE + sizeof(SUFFIX))

static void copy_name(const struct spool_id *id, char copy[NAME_SIZE])
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    (void)snprintf(copy, NAME_SIZE, "%s" SUFFIX, name);
}

static bool parse_copy_name(const char *copy, struct spool_id *ret)
{
    char name[SPOOL_NAME_SIZE];
    size_t length = strlen(copy);
    if (length <= strlen(SUFFIX) || length - strlen(SUFFIX) >= sizeof(name) ||
        strcmp(copy + length - strlen(SUFFIX), SUFFIX) != 0)
        return false;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(length - strlen(SUFFIX)), copy);
    return spool_parse_name(name, ret);
}

static int open_entry(int spool_fd, const struct spool_id *id, bool make)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    if (make && mkdirat(spool_fd, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int exit_copy_restore(int exits_fd, int spool_fd, const struct spool_id *id, struct error *err)
{
    struct launch_exit record;
    struct error why = { 0 };
    char copy[NAME_SIZE];
    copy_name(id, copy);
    int r = file_read_record(exits_fd, copy, &launch_exit_record, &record, &why);
    if (r < 0)
        return error_set(err, r, "%s: %s", copy, why.message);
    _cleanup_close_ int fd = open_entry(spool_fd, id, true);
    r = fd < 0 ? fd : file_write_record(fd, SPOOL_EXIT, &launch_exit_record, &record, false);
    record_clear(&launch_exit_record, &record);
    if (r == 0)
        r = spool_decide(fd, VERDICT_GO);
    return r < 0 ? error_set_errno(err, r, "cannot restore %s", copy) : 0;
}

/* An entry without a record may be one that an agent was restoring when it was killed. */
static bool has_exit(int spool_fd, const struct spool_id *id)
{
    _cleanup_close_ int fd = open_entry(spool_fd, id, false);
    return fd >= 0 && faccessat(fd, SPOOL_EXIT, F_OK, 0) == 0;
}

int exit_copies_restore(int exits_fd, int spool_fd, struct error *err)
{
    int fd = openat(exits_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *copies = fd < 0 ? NULL : fdopendir(fd);
    if (copies == NULL)
        return error_set_errno(err, -errno, "cannot read the directory");
    for (struct dirent *entry; r == 0 && (entry = readdir(copies)) != NULL;) {
        struct spool_id id;
        if (parse_copy_name(entry->d_name, &id) && !has_exit(spool_fd, &id))
            r = exit_copy_restore(exits_fd, spool_fd, &id, err);
    }
    (void)closedir(copies);
    return r;
}

int exit_copy_remove(int exits_fd, const struct spool_id *id)
{
    char copy[NAME_SIZE];
    copy_name(id, copy);
    return unlinkat(exits_fd, copy, 0) < 0 && errno != ENOENT ? -errno : 0;
}
