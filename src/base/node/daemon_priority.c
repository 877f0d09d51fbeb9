/* SPDX-License-Identifier: MIT */
#include "base/node/daemon_priority.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"

int daemon_priority_reset_oom_score(int fd)
{
    char score[8] = "";
    if (pread(fd, score, sizeof(score) - 1, 0) < 0)
        return -errno;
    if (score[0] != '-')
        return 0;
    return pwrite(fd, "0", 1, 0) == 1 ? 0 : -errno;
}

int daemon_priority_drop(void)
{
    const struct sched_param normal = { 0 };
    if (geteuid() != 0)
        return 0;
    (void)sched_setscheduler(0, SCHED_OTHER, &normal);
    (void)setpriority(PRIO_PROCESS, 0, 0);
    _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : daemon_priority_reset_oom_score(fd);
}
