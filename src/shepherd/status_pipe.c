/* SPDX-License-Identifier: MIT */
/*
 * The pipe has a name, so that a shell can write to it. It is created, given to the user and opened again in
 * a directory that only root (or the rootless user) can change. The shepherd and the step's init have it open
 * for reading and writing, so writers never wait for a reader; the init inherits the descriptor and never
 * reads it. A job can therefore continue reporting while its shepherd is dead, until 64 KiB are full, and the
 * next shepherd reads the reports.
 *
 * The rate is limited: READ_MAX bytes are read at a time, with a pause after each. This is more than useful
 * reports need, and bounds the CPU time that a flood costs.
 */
#include "shepherd/status_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define CHUNK_SIZE 4096
#define READ_MAX   (64L << 10) // bytes; the usual capacity of a pipe
#define REST_MS    10
#define DRAIN_MAX  (1L << 20) // bytes; the largest capacity that a user can set for a pipe

void status_pipe_init(struct status_pipe *status_pipe)
{
    *status_pipe = (struct status_pipe){ .pipe_fd = -1, .file_fd = -1, .spool_fd = -1 };
}

void status_pipe_close(struct status_pipe *status_pipe)
{
    closep(&status_pipe->pipe_fd);
    closep(&status_pipe->file_fd);
}

/* Never blocks; rejects other types of files. */
static int open_pipe(const char *path)
{
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISFIFO(st.st_mode) ? take_fd(&fd) : -EBADF;
}

/* Creates a new inode instead of using that of a shepherd that died before the verdict, whose init still has
 * it open. */
static int make_pipe(const struct launch_spec *spec)
{
    (void)unlink(spec->say_pipe);
    if (mkfifo(spec->say_pipe, 0600) < 0)
        return -errno;
    _cleanup_close_ int fd = open_pipe(spec->say_pipe);
    if (fd >= 0 && geteuid() == 0 && fchown(fd, spec->uid, spec->gid) < 0)
        return -errno;
    return take_fd(&fd);
}

int status_pipe_make(struct status_pipe *status_pipe, const struct launch_spec *spec, int spool_fd)
{
    if (spec->say_pipe == NULL)
        return 0;
    status_pipe->spool_fd = spool_fd;
    status_pipe->pipe_fd = make_pipe(spec);
    return status_pipe->pipe_fd < 0 ? status_pipe->pipe_fd : 0;
}

void status_pipe_adopt(struct status_pipe *status_pipe, const struct launch_spec *spec, int spool_fd)
{
    if (spec->say_pipe == NULL)
        return;
    status_pipe->spool_fd = spool_fd;
    status_pipe->pipe_fd = open_pipe(spec->say_pipe);
    status_pipe->file_fd = openat(spool_fd, SPOOL_REPORT, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    (void)spool_read_report(spool_fd, &status_pipe->parser.latest);
}

int status_pipe_source(const struct status_pipe *status_pipe, int64_t boot_ms)
{
    return boot_ms < status_pipe->rest_until_ms ? -1 : status_pipe->pipe_fd;
}

int status_pipe_wait_ms(const struct status_pipe *status_pipe, int64_t boot_ms)
{
    bool is_resting = status_pipe->pipe_fd >= 0 && boot_ms < status_pipe->rest_until_ms;
    return is_resting ? (int)(status_pipe->rest_until_ms - boot_ms) : -1;
}

/* Most jobs report nothing and need no file. If a report cannot be stored because the file system is full,
 * either the job repeats it, or it is not worth ending the step for. */
static void keep(struct status_pipe *status_pipe)
{
    static const struct spool_report nothing;
    const struct spool_report *latest = &status_pipe->parser.latest;
    if (status_pipe->file_fd < 0 && memcmp(latest, &nothing, sizeof(nothing)) == 0)
        return;
    if (status_pipe->file_fd < 0)
        status_pipe->file_fd =
            openat(status_pipe->spool_fd, SPOOL_REPORT, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (status_pipe->file_fd >= 0)
        (void)spool_write_report(status_pipe->file_fd, latest);
}

static bool take(struct status_pipe *status_pipe, ssize_t most)
{
    char bytes[CHUNK_SIZE];
    int64_t wall_ms = clock_wall_ms();
    bool is_checkpointed = false, is_any = false;
    for (ssize_t n; most > 0 && (n = read(status_pipe->pipe_fd, bytes, sizeof(bytes))) > 0; most -= n) {
        is_checkpointed =
            status_parser_add(&status_pipe->parser, wall_ms, bytes, (size_t)n) || is_checkpointed;
        is_any = true;
    }
    if (is_any)
        keep(status_pipe);
    return is_checkpointed;
}

bool status_pipe_read(struct status_pipe *status_pipe, int64_t boot_ms)
{
    status_pipe->rest_until_ms = boot_ms + REST_MS;
    return status_pipe->pipe_fd >= 0 && take(status_pipe, READ_MAX);
}

bool status_pipe_drain(struct status_pipe *status_pipe)
{
    return status_pipe->pipe_fd >= 0 && take(status_pipe, DRAIN_MAX);
}

void status_pipe_ask_save(struct status_pipe *status_pipe, enum spool_save save)
{
    status_pipe->parser.latest.save = save;
    keep(status_pipe);
}

enum spool_save status_pipe_save(const struct status_pipe *status_pipe)
{
    return (enum spool_save)status_pipe->parser.latest.save;
}

bool status_pipe_finish(struct status_pipe *status_pipe)
{
    bool is_checkpointed = status_pipe_drain(status_pipe);
    if (status_pipe->pipe_fd < 0)
        return false;
    is_checkpointed = status_parser_end(&status_pipe->parser, clock_wall_ms()) || is_checkpointed;
    keep(status_pipe);
    return is_checkpointed;
}
