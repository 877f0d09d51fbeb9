/* SPDX-License-Identifier: MIT */
/*
 * The end of the step must not wait for a file server that does not respond: after the timeout the child is
 * sent SIGKILL and abandoned. It holds no resource of the shepherd that another process could wait for.
 */
#include "shepherd/orphan_tail.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "shepherd/user.h"

#define TIMEOUT_MS 2000

static _Noreturn void send_tail(const struct shepherd *shepherd, int fd)
{
    char text[TAIL_SIZE];
    enum launch_step step;
    shepherd_drop(shepherd);
    if (user_become(&shepherd->spec, &step) == 0)
        (void)write_all(fd, text, tail_read(shepherd->log_fd, shepherd->log_start, text));
    _exit(0);
}

/* The number of bytes received until the other side closed; 0 on timeout. */
static size_t receive_tail(int fd, char text[TAIL_SIZE])
{
    int64_t deadline_ms = clock_boot_ms() + TIMEOUT_MS;
    size_t length = 0;
    for (;;) {
        struct pollfd source = { fd, POLLIN, 0 };
        int64_t left_ms = deadline_ms - clock_boot_ms();
        if (left_ms <= 0 || poll(&source, 1, (int)left_ms) != 1)
            return 0;
        ssize_t n = read(fd, text + length, TAIL_SIZE - 1 - length);
        if (n <= 0)
            return n == 0 ? length : 0;
        length += (size_t)n;
        if (length == TAIL_SIZE - 1)
            return length;
    }
}

void orphan_tail_read(const struct shepherd *shepherd, char text[TAIL_SIZE])
{
    int pair[2];
    text[0] = '\0';
    if (shepherd->log_fd < 0 || pipe2(pair, O_CLOEXEC) < 0)
        return;
    _cleanup_close_ int ours = pair[0];
    pid_t pid = fork();
    if (pid == 0)
        send_tail(shepherd, pair[1]);
    (void)close(pair[1]);
    if (pid < 0)
        return;
    text[receive_tail(ours, text)] = '\0';
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, WNOHANG);
}
