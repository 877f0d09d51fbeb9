/* SPDX-License-Identifier: MIT */
/*
 * A tmpfs needs no cleanup, so no root process has to walk through a user's directories. The
 * namespaces belong to the user namespace of the machine, so a job cannot change its own
 * mounts.
 */
#include "base/node/private_tmp.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/node/probe.h"

#define SOURCE  "mgpu-private-tmp" // shown by mount(8) in the job
#define QUEUES  "/dev/mqueue"
#define OPTIONS "mode=1777"

/* A directory that the machine lacks is missing in a job as well. */
static int cover(const char *path, const char *type, const char *options)
{
    return mount(SOURCE, path, type, MS_NOSUID | MS_NODEV, options) < 0 && errno != ENOENT ? -errno : 0;
}

/* Receives mounts from the machine and passes none back. Shared again, as container runtimes expect of /. */
static int separate(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
                   mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0
               ? -errno
               : 0;
}

int private_tmp_enter(enum private_tmp which)
{
    if (unshare(CLONE_NEWNS | (which == PRIVATE_TMP_ALL ? CLONE_NEWIPC : 0)) < 0)
        return -errno;
    int separated = separate();
    if (separated < 0)
        return separated;
    for (const struct private_place *place = private_places; place->path != NULL; place++) {
        int r = place->since <= which ? cover(place->path, "tmpfs", OPTIONS) : 0;
        if (r < 0)
            return r;
    }
    /* This mount shows the queues of the IPC namespace in which it was mounted. */
    int r = which == PRIVATE_TMP_ALL ? cover(QUEUES, "mqueue", NULL) : 0;
    return r == -ENODEV ? 0 : r;
}

int private_tmp_join(int pidfd)
{
    return setns(pidfd, CLONE_NEWNS | CLONE_NEWIPC) < 0 ? -errno : 0;
}

bool private_tmp_has(int fd)
{
    struct stat file, there;
    if (fstat(fd, &file) < 0)
        return false;
    for (const struct private_place *place = private_places; place->path != NULL; place++)
        if (stat(place->path, &there) == 0 && there.st_dev == file.st_dev)
            return true;
    return false;
}

int private_tmp_probe(struct error *err)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(-private_tmp_enter(PRIVATE_TMP_ALL));
    return probe_wait(pid, "cannot mount a tmpfs in a mount namespace", err);
}
