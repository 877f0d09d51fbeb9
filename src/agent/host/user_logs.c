/* SPDX-License-Identifier: MIT */
/* The directory is created with mkdirat(2), and its owner is changed through its open descriptor. */
#include "agent/host/user_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define SHARED_MODE 0711 // users can traverse it, but not list it

static int make_below(int parent, const char *name, uid_t uid, gid_t gid)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid)
        return 0;
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    _cleanup_close_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != 0)
        return -EEXIST; // owned by another user
    return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

int user_logs_make(const char *dir, uid_t uid, gid_t gid, struct error *err)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "%u", uid);
    int r = make_directories(dir, SHARED_MODE);
    _cleanup_close_ int parent = r < 0 ? r : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = parent < 0 ? -errno : make_below(parent, name, uid, gid);
    if (r == -EPERM) // -EPERM would mean that the user may never run jobs here
        r = -EACCES;
    return r < 0 ? error_set_errno(err, r, "cannot create the log directory %s/%s", dir, name) : 0;
}
