/* SPDX-License-Identifier: MIT */
/*
 * A file is created in a directory that only the agent can change, written, and shared with its user through
 * its open descriptor, so a name can never refer to another file.
 */
#include "agent/launch/scripts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/user_file.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"

#define PASS_MODE   0711
#define SCRIPT_MODE 0500

int scripts_open(const char *run_dir, mode_t mode, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/" SCRIPTS_DIR, run_dir);
    int r = make_directories(path, mode);
    int fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_set_errno(err, r < 0 ? r : -errno, "cannot create directory %s", path) : fd;
}

char *scripts_directory(const char *run_dir, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    return xasprintf("%s/" SCRIPTS_DIR "/%s", run_dir, name);
}

static int write_script(int dirfd, const char *name, const char *text, uid_t uid, gid_t gid)
{
    if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
        return -errno;
    _cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    text += text_mark_length(text, strlen(text)); // a client may send a file unchanged
    int r = write_all(fd, text, strlen(text));
    return r < 0 ? r : user_file_share(fd, uid, gid, SCRIPT_MODE);
}

int scripts_write(int scripts_fd, const struct spool_id *id, const char *name, const char *text, uid_t uid,
    gid_t gid, struct error *err)
{
    char directory[SPOOL_NAME_SIZE];
    spool_name(id, directory);
    int r = mkdirat(scripts_fd, directory, 0700) < 0 && errno != EEXIST ? -errno : 0;
    _cleanup_close_ int fd =
        r < 0 ? r : openat(scripts_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r == 0)
        r = fd < 0 || fchmod(fd, PASS_MODE) < 0 ? -errno : write_script(fd, name, text, uid, gid);
    return r < 0 ? error_set_errno(err, r, "cannot write the script of job %llu", (unsigned long long)id->job)
                 : 0;
}

static void remove_files(int dirfd)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        closep(&copy);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd, entry->d_name, 0);
    (void)closedir(dir);
}

int scripts_remove(int scripts_fd, const struct spool_id *id)
{
    char directory[SPOOL_NAME_SIZE];
    spool_name(id, directory);
    _cleanup_close_ int fd = openat(scripts_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    remove_files(fd);
    return unlinkat(scripts_fd, directory, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}
