/* SPDX-License-Identifier: MIT */
#include "agent/host/enter_cgroups.h"

#include <errno.h>
#include <fcntl.h>

#include "base/files.h"
#include "base/memory.h"

static int enter_one(const char *dir, const char *file)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, file);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : write_all(fd, "0", 1);
}

int enter_cgroups(const struct launch_spec *spec, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < spec->v1_cgroups.count; i++)
        r = enter_one(spec->v1_cgroups.items[i], "tasks");
    if (r == 0 && spec->job_cgroup != NULL)
        r = enter_one(spec->job_cgroup, "cgroup.procs");
    return r < 0 ? error_set_errno(err, r, "cannot enter its cgroup") : 0;
}
