/* SPDX-License-Identifier: MIT */
/*
 * A command that ends by the signal of a stop looks like one that was killed by someone. An adopting shepherd
 * distinguishes the two by this note, which exists before the signal is sent; otherwise an acknowledged
 * requeue could become the end of the job if its shepherd is killed at the wrong moment. The note also
 * records how long the processes that outlive the command may still run.
 */
#include "shepherd/stopping.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/memory.h"

void stopping_note(const struct shepherd *shepherd, const struct ending *ending, int signal, bool is_sent,
    int64_t kill_boot_ms)
{
    struct init_stop stop = {
        .signal = ending->stop_signal != 0 ? ending->stop_signal : (uint32_t)signal,
        .end = ending->stop_end,
        .is_sent = is_sent,
        .kill_boot_ms = kill_boot_ms,
        .grace_ms = ending->grace_ms,
    };
    (void)init_write_stop(shepherd->status_fd, &stop);
}

bool stopping_read(const struct shepherd *shepherd, struct ending *ending, struct init_stop *ret)
{
    if (!init_read_stop(shepherd->status_fd, ret))
        return false;
    ending->stop_signal = ret->signal;
    ending->stop_end = ret->end < END_KINDS ? (enum job_end)ret->end : END_NONE;
    ending->grace_ms = ret->grace_ms;
    return true;
}

int64_t stopping_read_host(const struct shepherd *shepherd)
{
    struct spool_id host = {
        .job = shepherd->id.job, .attempt = shepherd->id.attempt, .rank = shepherd->id.rank
    };
    char name[SPOOL_NAME_SIZE], path[SPOOL_NAME_SIZE + 16];
    struct init_stop stop;
    spool_name(&host, name);
    (void)snprintf(path, sizeof(path), "../%s/" SPOOL_STATUS, name);
    _cleanup_close_ int fd = openat(shepherd->spool_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && init_read_stop(fd, &stop) ? stop.kill_boot_ms : 0;
}
