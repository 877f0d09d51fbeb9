/* SPDX-License-Identifier: MIT */
/*
 * For a step whose shepherd died after the verdict. Its processes are not children of this one, so the exit
 * status is read from the file that its init writes; which processes are alive is known from the cgroup, or
 * from init and command, each identified by pid and start time.
 */
#include "shepherd/shepherd.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "shepherd/record.h"
#include "shepherd/watch.h"

/* Sets the fields that `started` records. False if the gate was never opened. */
static bool read_started(struct shepherd *shepherd)
{
    struct launch_started started;
    if (file_read_record(shepherd->spool_fd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        return false;
    shepherd->log_path = take_ptr(started.log_path);
    shepherd->init_pid = (pid_t)started.init_pid;
    shepherd->init_pidfd = process_open(shepherd->init_pid, started.init_start);
    record_clear(&launch_started_record, &started);
    return true;
}

static int adopt(struct shepherd *shepherd)
{
    struct error err = { 0 };
    struct ending ending = { 0 };
    shepherd->is_adopting = true;
    if (shepherd_prepare(shepherd, &err) < 0)
        return shepherd_complain(&err);
    shepherd->status_fd = openat(shepherd->spool_fd, SPOOL_STATUS, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    status_pipe_adopt(&shepherd->status_pipe, &shepherd->spec, shepherd->spool_fd);
    bool is_started = read_started(shepherd);
    watch_step(shepherd, &ending);
    /* `started` is written before the gate opens. Without it nothing ran, whatever the init does later. */
    if (!is_started)
        ending.status = (struct init_status){ .phase = INIT_NEVER };
    return record_publish(shepherd, &ending);
}

int shepherd_adopt(const char *spool_dir)
{
    _cleanup_(shepherd_close) struct shepherd shepherd;
    struct error err = { 0 };
    struct stat st;
    /* Waits because the init of the dead shepherd may briefly still hold a copy of the lock. */
    int r = shepherd_open(&shepherd, spool_dir, true, &err);
    if (r < 0)
        return shepherd_complain(&err);
    if (fstatat(shepherd.spool_fd, SPOOL_EXIT, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return SHEPHERD_DONE;
    if (spool_verdict(shepherd.spool_fd) != VERDICT_GO)
        return SHEPHERD_SETTLED;
    return adopt(&shepherd);
}
