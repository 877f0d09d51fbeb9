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
#include "shepherd/notify.h"

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

void notify_init(struct notify *notify)
{
    *notify = (struct notify){ .pipe_fd = -1, .file_fd = -1 };
}

void notify_close(struct notify *notify)
{
    closep(&notify->pipe_fd);
    closep(&notify->file_fd);
    notify->pipe_fd = notify->file_fd = -1;
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
    (void)unlink(spec->notify);
    if (mkfifo(spec->notify, 0600) < 0)
        return -errno;
    _cleanup_close_ int fd = open_pipe(spec->notify);
    if (fd >= 0 && geteuid() == 0 && fchown(fd, spec->uid, spec->gid) < 0)
        return -errno;
    return take_fd(&fd);
}

int notify_make(struct notify *notify, const struct launch_spec *spec, int spool_fd)
{
    if (spec->notify == NULL)
        return 0;
    notify->pipe_fd = make_pipe(spec);
    if (notify->pipe_fd < 0)
        return notify->pipe_fd;
    (void)unlinkat(spool_fd, SPOOL_NOTICE, 0);
    notify->file_fd =
        openat(spool_fd, SPOOL_NOTICE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return notify->file_fd < 0 ? -errno : 0;
}

void notify_adopt(struct notify *notify, const struct launch_spec *spec, int spool_fd)
{
    if (spec->notify == NULL)
        return;
    notify->pipe_fd = open_pipe(spec->notify);
    notify->file_fd = openat(spool_fd, SPOOL_NOTICE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    (void)spool_read_notice(spool_fd, &notify->notice.said);
}

int notify_source(const struct notify *notify, int64_t boot_ms)
{
    return boot_ms < notify->rest_until_ms ? -1 : notify->pipe_fd;
}

int notify_wait_ms(const struct notify *notify, int64_t boot_ms)
{
    bool is_resting = notify->pipe_fd >= 0 && boot_ms < notify->rest_until_ms;
    return is_resting ? (int)(notify->rest_until_ms - boot_ms) : -1;
}

/* What cannot be kept (a full file system) is said again, or is not worth an end. */
static bool take(struct notify *notify, ssize_t most)
{
    char bytes[CHUNK_SIZE];
    int64_t wall_ms = clock_wall_ms();
    bool is_checkpointed = false, is_any = false;
    for (ssize_t n; most > 0 && (n = read(notify->pipe_fd, bytes, sizeof(bytes))) > 0; most -= n) {
        is_checkpointed = notice_add(&notify->notice, wall_ms, bytes, (size_t)n) || is_checkpointed;
        is_any = true;
    }
    if (is_any && notify->file_fd >= 0)
        (void)spool_write_notice(notify->file_fd, &notify->notice.said);
    return is_checkpointed;
}

bool notify_read(struct notify *notify, int64_t boot_ms)
{
    notify->rest_until_ms = boot_ms + REST_MS;
    return notify->pipe_fd >= 0 && take(notify, READ_MAX);
}

bool notify_drain(struct notify *notify)
{
    return notify->pipe_fd >= 0 && take(notify, DRAIN_MAX);
}

static void keep(const struct notify *notify)
{
    if (notify->file_fd >= 0)
        (void)spool_write_notice(notify->file_fd, &notify->notice.said);
}

void notify_tell(struct notify *notify, enum spool_told told)
{
    notify->notice.said.told = told;
    keep(notify);
}

enum spool_told notify_told(const struct notify *notify)
{
    return (enum spool_told)notify->notice.said.told;
}

bool notify_finish(struct notify *notify)
{
    bool is_checkpointed = notify_drain(notify);
    if (notify->pipe_fd < 0)
        return false;
    is_checkpointed = notice_end(&notify->notice, clock_wall_ms()) || is_checkpointed;
    keep(notify);
    return is_checkpointed;
}
