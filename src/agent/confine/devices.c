/* SPDX-License-Identifier: MIT */
/*
 * The filter is attached to the attempt's cgroup, above those of its steps. An access that it denies is
 * denied in all cgroups below, whatever else is attached there. Only root can write in these directories or
 * detach a program, and a process can move to another cgroup only with write access to a common ancestor, so
 * a user's job can do neither. A job of root can do both; for it, the filter only prevents mistakes.
 */
#include "agent/confine/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define PROBE "probe" // a cgroup in which no process ever runs

static int open_directory(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int confine_devices_probe(int instance_fd, struct error *err)
{
    if (mkdirat(instance_fd, PROBE, 0755) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create a cgroup to try a device filter on");
    _cleanup_close_ int fd = open_directory(instance_fd, PROBE);
    int r = fd < 0 ? error_set_errno(err, fd, "cannot open a cgroup to try a device filter on")
                   : device_filter_probe(fd, err);
    (void)unlinkat(instance_fd, PROBE, AT_REMOVEDIR);
    return r;
}

int confine_devices_guard(struct device_filters *filters, int instance_fd, const char *name,
    const struct launch_spec *spec, struct error *err)
{
    if (spec->devices.count == 0)
        return 0;
    _cleanup_close_ int fd = open_directory(instance_fd, name);
    if (fd < 0)
        return error_set_errno(err, fd, "cannot open cgroup %s", name);
    return device_filter_apply(filters, fd, spec->devices.items, spec->devices.count, err);
}
