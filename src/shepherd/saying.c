/* SPDX-License-Identifier: MIT */
/*
 * The pipe has a name, so that a shell can write to it; it lies in a directory that only root (or the
 * rootless user) can change, and is made, given away and opened again there. Whoever holds it open for
 * reading and writing keeps writers from waiting for a reader: the shepherd, and the step's init, which is
 * born with the descriptor and never looks at it. So a job goes on saying things while its shepherd is dead,
 * until 64 KiB are full, and the next shepherd reads them.
 *
 * A job may say as much as it likes. It is read READ_MAX bytes at a time with a rest after each, which is
 * more than a program that says something useful ever writes, and costs a flood a bounded part of a CPU.
 */
#include "shepherd/saying.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define CHUNK_SIZE 4096
#define READ_MAX   (64L << 10) // bytes; what a pipe usually holds
#define REST_MS    10
#define DRAIN_MAX  (1L << 20) // bytes; what a user can make a pipe hold

void saying_init(struct saying *saying)
{
    *saying = (struct saying){ .pipe_fd = -1, .file_fd = -1 };
}

void saying_close(struct saying *saying)
{
    closep(&saying->pipe_fd);
    closep(&saying->file_fd);
    saying->pipe_fd = saying->file_fd = -1;
}

/* Never waits, and takes no other kind of file that somebody put there. */
static int open_pipe(const char *path)
{
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISFIFO(st.st_mode) ? take_fd(&fd) : -EBADF;
}

/* Another inode than that of a shepherd that died before the verdict, whose init still holds it. */
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

int saying_make(struct saying *saying, const struct launch_spec *spec, int spool_fd)
{
    if (spec->say_pipe == NULL)
        return 0;
    saying->pipe_fd = make_pipe(spec);
    if (saying->pipe_fd < 0)
        return saying->pipe_fd;
    (void)unlinkat(spool_fd, SPOOL_SAID, 0);
    saying->file_fd = openat(spool_fd, SPOOL_SAID, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return saying->file_fd < 0 ? -errno : 0;
}

void saying_adopt(struct saying *saying, const struct launch_spec *spec, int spool_fd)
{
    if (spec->say_pipe == NULL)
        return;
    saying->pipe_fd = open_pipe(spec->say_pipe);
    saying->file_fd = openat(spool_fd, SPOOL_SAID, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    (void)spool_read_said(spool_fd, &saying->said.latest);
}

int saying_source(const struct saying *saying, int64_t boot_ms)
{
    return boot_ms < saying->rest_until_ms ? -1 : saying->pipe_fd;
}

int saying_wait_ms(const struct saying *saying, int64_t boot_ms)
{
    bool is_resting = saying->pipe_fd >= 0 && boot_ms < saying->rest_until_ms;
    return is_resting ? (int)(saying->rest_until_ms - boot_ms) : -1;
}

/* What cannot be kept (a full file system) is said again, or is not worth an end. */
static bool take(struct saying *saying, ssize_t most)
{
    char bytes[CHUNK_SIZE];
    int64_t wall_ms = clock_wall_ms();
    bool is_checkpointed = false, is_any = false;
    for (ssize_t n; most > 0 && (n = read(saying->pipe_fd, bytes, sizeof(bytes))) > 0; most -= n) {
        is_checkpointed = said_add(&saying->said, wall_ms, bytes, (size_t)n) || is_checkpointed;
        is_any = true;
    }
    if (is_any && saying->file_fd >= 0)
        (void)spool_write_said(saying->file_fd, &saying->said.latest);
    return is_checkpointed;
}

bool saying_read(struct saying *saying, int64_t boot_ms)
{
    saying->rest_until_ms = boot_ms + REST_MS;
    return saying->pipe_fd >= 0 && take(saying, READ_MAX);
}

bool saying_drain(struct saying *saying)
{
    return saying->pipe_fd >= 0 && take(saying, DRAIN_MAX);
}

static void keep(const struct saying *saying)
{
    if (saying->file_fd >= 0)
        (void)spool_write_said(saying->file_fd, &saying->said.latest);
}

void saying_ask_save(struct saying *saying, enum spool_save save)
{
    saying->said.latest.save = save;
    keep(saying);
}

enum spool_save saying_save(const struct saying *saying)
{
    return (enum spool_save)saying->said.latest.save;
}

bool saying_finish(struct saying *saying)
{
    bool is_checkpointed = saying_drain(saying);
    if (saying->pipe_fd < 0)
        return false;
    is_checkpointed = said_end(&saying->said, clock_wall_ms()) || is_checkpointed;
    keep(saying);
    return is_checkpointed;
}
