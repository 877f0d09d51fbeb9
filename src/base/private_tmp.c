/* SPDX-License-Identifier: MIT */
/*
 * A tmpfs has no remains: nothing of it has to be removed by a process of root that would walk through
 * directories of a user. The namespaces belong to the user namespace of the machine, so a job cannot change
 * what is mounted in its own.
 */
#include "base/private_tmp.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOURCE  "mgpu-private-tmp" // shown by mount(8) in the job
#define QUEUES  "/dev/mqueue"
#define OPTIONS "mode=1777"

static const struct {
    const char *path;
    enum private_tmp since;
} places[] = {
    { "/tmp", PRIVATE_TMP_FILES },
    { "/var/tmp", PRIVATE_TMP_FILES },
    { "/dev/shm", PRIVATE_TMP_ALL },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* A machine may lack one of them, which is then not there in a job either. */
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
    for (size_t i = 0; i < PLACES; i++) {
        int r = places[i].since <= which ? cover(places[i].path, "tmpfs", OPTIONS) : 0;
        if (r < 0)
            return r;
    }
    /* Its mount shows the queues of the IPC namespace in which it was made. */
    int r = which == PRIVATE_TMP_ALL ? cover(QUEUES, "mqueue", NULL) : 0;
    return r == -ENODEV ? 0 : r;
}

int private_tmp_join(int pidfd)
{
    return setns(pidfd, CLONE_NEWNS | CLONE_NEWIPC) < 0 ? -errno : 0;
}

bool private_tmp_has(int fd)
{
    struct stat file, place;
    for (size_t i = 0; i < PLACES && fstat(fd, &file) == 0; i++)
        if (stat(places[i].path, &place) == 0 && place.st_dev == file.st_dev)
            return true;
    return false;
}

int private_tmp_probe(struct error *err)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(-private_tmp_enter(PRIVATE_TMP_ALL));
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start a process");
    pid_t ended;
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended < 0 || !WIFEXITED(status))
        return error_set(err, -ECHILD, "the process that tried it did not end by itself");
    if (WEXITSTATUS(status) == 0)
        return 0;
    return error_set_errno(err, -WEXITSTATUS(status), "cannot mount a tmpfs in a mount namespace");
}

/* Skips slashes, and components that are ".". */
static const char *next_name(const char *path)
{
    for (;;) {
        while (*path == '/')
            path++;
        if (path[0] != '.' || (path[1] != '/' && path[1] != '\0'))
            return path;
        path++;
    }
}

static bool is_below(const char *path, const char *place)
{
    for (path = next_name(path), place = next_name(place); *place != '\0'; place = next_name(place)) {
        size_t length = strcspn(place, "/");
        if (strncmp(path, place, length) != 0 || (path[length] != '/' && path[length] != '\0'))
            return false;
        path = next_name(path + length);
        place += length;
    }
    return *path != '\0';
}

const char *private_tmp_place(const char *path)
{
    for (size_t i = 0; i < PLACES; i++)
        if (is_below(path, places[i].path))
            return places[i].path;
    return NULL;
}
