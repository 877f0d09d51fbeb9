/* SPDX-License-Identifier: MIT */
/*
 * SQLite's log needs working locks and shared memory, and a sync that reaches the disk: network file systems
 * and most FUSE file systems provide neither, and two hosts could open the same store. They are refused by
 * name.
 */
#include "store/store_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

static const struct {
    uint32_t magic; // as in linux/magic.h, or in the file system's own sources
    const char *name;
} unsafe[] = {
    { 0x6969, "NFS" },
    { 0x517b, "SMB" },
    { 0xff534d42, "CIFS" },
    { 0xfe534d42, "SMB2" },
    { 0x65735546, "FUSE" },
    { 0x01021997, "9P" },
    { 0x00c36400, "Ceph" },
    { 0x5346414f, "AFS" },
    { 0x6b414653, "AFS" },
    { 0x73757245, "Coda" },
    { 0x564c, "NCP" },
    { 0x7461636f, "OCFS2" },
    { 0x01161970, "GFS2" },
    { 0x0bd00bd0, "Lustre" },
    { 0x47504653, "GPFS" },
    { 0xaad7aaea, "PanFS" },
    { 0x19830326, "BeeGFS" },
    { 0x786f4256, "VirtualBox shared folder" },
};

const char *store_dir_unsafe(uint64_t magic)
{
    for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
        if (unsafe[i].magic == (uint32_t)magic)
            return unsafe[i].name;
    return NULL;
}

static int check(const char *path, int dirfd, struct error *err)
{
    struct statfs disk;
    struct stat dir;
    if (fstatfs(dirfd, &disk) < 0 || fstat(dirfd, &dir) < 0)
        return error_set_errno(err, -errno, "cannot inspect %s", path);
    const char *name = store_dir_unsafe((uint64_t)disk.f_type);
    if (name != NULL) {
        (void)error_set(err, -EREMOTE, "%s is on %s, which is not safe for a store", path, name);
        return error_hint(err, "use --state-dir with a directory on a local disk");
    }
    if (dir.st_uid != geteuid()) {
        (void)error_set(err, -EPERM, "%s belongs to uid %u, but mgpud runs as uid %u", path,
            (unsigned)dir.st_uid, (unsigned)geteuid());
        return error_hint(err, "use another --state-dir, or: chown -R %u %s", (unsigned)geteuid(), path);
    }
    if ((dir.st_mode & 07777) != 0700 && fchmod(dirfd, 0700) < 0)
        return error_set_errno(err, -errno, "cannot set the permissions of %s", path);
    return 0;
}

int store_dir_open(const char *dir, char **ret_path, int *ret_dirfd, struct error *err)
{
    int r = make_directories(dir, 0700);
    if (r < 0)
        return error_set_errno(err, r, "cannot create the state directory %s", dir);
    _cleanup_free_ char *path = realpath(dir, NULL);
    if (path == NULL)
        return error_set_errno(err, -errno, "cannot find the state directory %s", dir);
    _cleanup_close_ int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dirfd < 0)
        return error_set_errno(err, -errno, "cannot open the state directory %s", path);
    r = check(path, dirfd, err);
    if (r < 0)
        return r;
    *ret_path = take_ptr(path);
    *ret_dirfd = take_fd(&dirfd);
    return 0;
}

static int refuse_second(const char *path, int lockfd, struct error *err)
{
    char text[32] = "";
    ssize_t n = pread(lockfd, text, sizeof(text) - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    if (pid <= 0) {
        (void)error_set(err, -EBUSY, "%s is used by another mgpud", path);
        return error_hint(err, "stop it first, or use another --state-dir");
    }
    (void)error_set(err, -EBUSY, "%s is used by another mgpud (pid %ld)", path, pid);
    return error_hint(err, "stop it first (kill %ld), or use another --state-dir", pid);
}

int store_dir_lock(const char *path, int dirfd, int *ret_lockfd, struct error *err)
{
    _cleanup_close_ int lockfd = openat(dirfd, STORE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lockfd < 0)
        return error_set_errno(err, -errno, "cannot open %s/%s", path, STORE_LOCK);
    int r = lock_file(lockfd);
    if (r == -EAGAIN)
        return refuse_second(path, lockfd, err);
    if (r < 0)
        return error_set_errno(err, r, "cannot lock %s/%s", path, STORE_LOCK);
    /* Only for display: a full disk must not keep the daemon from starting. */
    char text[32];
    int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(lockfd, 0) == 0)
        (void)!pwrite(lockfd, text, (size_t)length, 0);
    *ret_lockfd = take_fd(&lockfd);
    return 0;
}

off_t store_dir_size(int dirfd, const char *name)
{
    struct stat file;
    return fstatat(dirfd, name, &file, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : file.st_size;
}
