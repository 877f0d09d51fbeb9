/* SPDX-License-Identifier: MIT */
/*
 * A command that ends by the signal of a stop looks like one that was killed by someone. An adopting shepherd
 * distinguishes the two by this file, which exists before the signal is sent; otherwise an acknowledged
 * requeue could become the end of the job if its shepherd is killed at the wrong moment.
 */
#include "shepherd/stopping.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

void stopping_note(const struct shepherd *shepherd, const struct ending *ending, int signal)
{
    const struct spool_stop stop = {
        .magic = SPOOL_STOP_MAGIC,
        .signal = (uint32_t)signal,
        .end = ending->stop_end,
    };
    _cleanup_close_ int fd =
        openat(shepherd->spool_fd, SPOOL_STOP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        (void)write_all(fd, &stop, sizeof(stop));
}

void stopping_read(const struct shepherd *shepherd, struct ending *ending)
{
    struct spool_stop stop;
    _cleanup_close_ int fd = openat(shepherd->spool_fd, SPOOL_STOP, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || read(fd, &stop, sizeof(stop)) != (ssize_t)sizeof(stop) || stop.magic != SPOOL_STOP_MAGIC)
        return;
    ending->stop_signal = stop.signal;
    ending->stop_end = stop.end < END_KINDS ? (enum job_end)stop.end : END_NONE;
}
