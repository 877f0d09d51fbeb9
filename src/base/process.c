/* SPDX-License-Identifier: MIT */
/* Reads /proc with plain read(2) and a fixed buffer: the shepherd uses this after its gate has opened. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

static ssize_t read_small(const char *path, char *text, size_t size)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, size - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return n;
}

int process_boot_id(char boot_id[BOOT_ID_SIZE])
{
    ssize_t n = read_small("/proc/sys/kernel/random/boot_id", boot_id, BOOT_ID_SIZE);
    if (n < 0)
        return (int)n;
    return n == BOOT_ID_SIZE - 1 ? 0 : -EBADMSG;
}

uint64_t process_start_time(pid_t pid)
{
    char path[64], stat[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (read_small(path, stat, sizeof(stat)) <= 0)
        return 0;
    /* The name in field 2 may contain blanks and parentheses, so fields are counted from the last ")". */
    char *p = strrchr(stat, ')');
    for (int field = 2; p != NULL && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p == NULL ? 0 : strtoull(p + 1, NULL, 10);
}

bool process_is_alive(pid_t pid, uint64_t start_time)
{
    return start_time != 0 && process_start_time(pid) == start_time;
}

int process_read_times(pid_t pid, pid_t tid, struct process_times *ret)
{
    char path[96], text[1024], stat[1024];
    struct process_times times = { 0 };
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    ssize_t n = read_small(path, text, sizeof(text));
    if (n < 0)
        return (int)n;
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &times.ran_ns, &times.waited_ns) != 2)
        return -EBADMSG;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    n = read_small(path, stat, sizeof(stat));
    if (n < 0)
        return (int)n;
    const char *name_end = strrchr(stat, ')');
    times.is_runnable = name_end != NULL && strncmp(name_end, ") R", 3) == 0;
    *ret = times;
    return 0;
}

int process_open(pid_t pid, uint64_t start_time)
{
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    if (!process_is_alive(pid, start_time))
        return -ESRCH;
    return take_fd(&fd);
}

int process_signal(int pidfd, int signal)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}
