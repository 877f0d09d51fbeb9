/* SPDX-License-Identifier: MIT */
/* Only the agent can change the directory, so the name never refers to another file. */
#include "agent/host/notices.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/user_file.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/utc.h"

#define FILE_MODE 0400

char *notices_path(const char *run_dir, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    return xasprintf("%s/" NOTICES_DIR "/%s", run_dir, name);
}

static int make_file(const char *path, uid_t uid, gid_t gid)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return -errno;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    return fd < 0 ? -errno : user_file_share(fd, uid, gid, FILE_MODE);
}

int notices_make(
    const char *run_dir, const struct spool_id *id, uid_t uid, gid_t gid, bool is_root, struct error *err)
{
    _cleanup_free_ char *directory = xasprintf("%s/" NOTICES_DIR, run_dir);
    _cleanup_free_ char *path = notices_path(run_dir, id);
    int r = make_directories(directory, is_root ? 0711 : 0700);
    if (r == 0)
        r = make_file(path, uid, gid);
    return r < 0 ? error_set_errno(err, r, "cannot create the file for notices %s", path) : 0;
}

/* Without root the file belongs to this user, and is read-only for the user as well. */
static int open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 || errno != EACCES || chmod(path, FILE_MODE | 0200) < 0)
        return fd < 0 ? -errno : fd;
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    int r = fd < 0 ? -errno : fd;
    (void)chmod(path, FILE_MODE);
    return r;
}

int notices_add(const char *path, int64_t wall_ms, const char *subject, const char *text)
{
    struct stat st;
    char time[64];
    _cleanup_buffer_ struct buffer line = { 0 };
    _cleanup_close_ int fd = open_file(path);
    if (fd < 0)
        return fd;
    utc_format(wall_ms, time, sizeof(time));
    buffer_printf(&line, "%s %s %s\n", time, subject, text);
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size + line.length > NOTICES_MAX)
        return -EFBIG;
    return write_all(fd, line.bytes, line.length);
}

int notices_remove(const char *run_dir, const struct spool_id *id)
{
    _cleanup_free_ char *path = notices_path(run_dir, id);
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
