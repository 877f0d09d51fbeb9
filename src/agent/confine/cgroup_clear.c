/* SPDX-License-Identifier: MIT */
/*
 * A service manager keeps a cgroup only while the unit has a process, and starts that process directly in it.
 * systemd has an option for this from version 254 on (DelegateSubgroup=); this works with all versions.
 */
#include "agent/confine/cgroup_clear.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define HOLDER    "holder"
#define PROCS_MAX 65536U
#define TURNS_MAX 8 // processes may fork between rounds

/* Modifies `pids`. A process that has ended meanwhile does not need to be moved. */
static int move(int procs_fd, char *pids)
{
    char *rest = pids;
    for (char *pid; (pid = strsep(&rest, "\n")) != NULL;) {
        if (*pid == '\0')
            continue;
        int r = write_all(procs_fd, pid, strlen(pid));
        if (r < 0 && r != -ESRCH)
            return r;
    }
    return 0;
}

int cgroup_clear(const char *path)
{
    _cleanup_free_ char *procs = xasprintf("%s/cgroup.procs", path);
    _cleanup_free_ char *holder = xasprintf("%s/" HOLDER, path);
    _cleanup_free_ char *holder_procs = xasprintf("%s/cgroup.procs", holder);
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        _cleanup_buffer_ struct buffer pids = { 0 };
        int r = file_read(AT_FDCWD, procs, PROCS_MAX, &pids);
        if (r < 0 || pids.length == 0)
            return r;
        if (mkdir(holder, 0755) < 0 && errno != EEXIST)
            return -errno;
        _cleanup_close_ int fd = open(holder_procs, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        r = move(fd, buffer_text(&pids));
        if (r < 0)
            return r;
    }
    return -EBUSY;
}
