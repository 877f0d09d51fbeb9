/* SPDX-License-Identifier: MIT */
/*
 * An entry of a step that starts early has, beside its spec:
 *
 *   park    formally parked by order 0, and treated as parked until its GPUs are granted
 *   grant   a pipe that its init holds open: the grant is a byte in it, and stays there if no shepherd, no
 * agent and no mgpud is alive asked   written by its init when a process first waits for a GPU
 */
#include "agent/launch/early.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/devices.h"
#include "agent/launch/launcher_private.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/park.h"

int early_check(const struct launch_spec *spec, bool is_guarding, struct error *err)
{
    if (!is_guarding)
        return error_set(err, -ENOTSUP, "it cannot start early where GPUs are not confined");
    if (spec->image.count > 0 || spec->is_tty || spec->is_gated || spec->mps != NULL)
        return error_set(err, -ENOTSUP,
            "it cannot start early: it is interactive, in a container, on several nodes or uses MPS");
    return 0;
}

static int make_file(int dirfd, const char *name)
{
    _cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : 0;
}

int early_make_entry(int dirfd)
{
    const struct launch_park park = { .is_return = PARK_SAVE, .outcome = PARK_DONE, .is_early = true };
    if (mkfifoat(dirfd, SPOOL_GRANT, 0600) < 0 && errno != EEXIST)
        return -errno;
    int r = make_file(dirfd, SPOOL_ASKED);
    return r < 0 ? r : file_write_record(dirfd, SPOOL_PARK, &launch_park_record, &park, false);
}

/* Without an init, no process is waiting. */
static int notify_init(int dirfd)
{
    _cleanup_close_ int fd = openat(dirfd, SPOOL_GRANT, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENXIO ? 0 : -errno;
    return write(fd, "g", 1) == 1 || errno == EAGAIN || errno == EPIPE ? 0 : -errno;
}

/* Keeps spec and filter consistent: a starting agent creates the filter from the spec. */
static int set_devices(const struct launcher *launcher, const struct spool_id *id, int dirfd,
    const struct record_list *grants, struct launch_spec *spec, struct error *err)
{
    free(spec->devices.items);
    gpu_devices_rules(launcher->devices, grants, &spec->devices);
    int r = file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, spec, false);
    if (r < 0)
        return error_set_errno(err, r, "cannot write the spool of job %llu", (unsigned long long)id->job);
    r = launcher->confine->guard(launcher->cells, id, spec, err);
    return r < 0 ? r : 0;
}

int launcher_grant(const struct launcher *launcher, const struct spool_id *id, struct error *err)
{
    struct launch_spec spec;
    _cleanup_close_ int fd = launcher_open_entry(launcher, id);
    int r = fd < 0 ? fd : file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, err);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the spec of job %llu", (unsigned long long)id->job);
    const struct record_list none = { 0 };
    struct error ignored;
    r = set_devices(launcher, id, fd, &spec.gpus, &spec, err);
    if (r == 0 && (r = notify_init(fd)) < 0)
        (void)error_set_errno(
            err, r, "cannot notify job %llu that it has its GPUs", (unsigned long long)id->job);
    /* An agent that has died may have opened its devices too. */
    if (r < 0 && set_devices(launcher, id, fd, &none, &spec, &ignored) < 0) {
        (void)error_wrap(err, "the filter of its GPUs cannot be closed again");
        r = -ENOTRECOVERABLE;
    }
    record_clear(&launch_spec_record, &spec);
    return r;
}
