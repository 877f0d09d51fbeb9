/* SPDX-License-Identifier: MIT */
#include "cli/follow/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/follow/input_sender.h"

#define LEAVE_MS 5000 // for the sender's last messages

static bool is_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Bytes behind the position of a regular file. */
static off_t left_in_file(const struct stat *st)
{
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    return at >= 0 ? st->st_size - at : 0;
}

bool input_is_there(enum input_terminal terminal)
{
    struct stat st;
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH) != 0 || fstat(STDIN_FILENO, &st) < 0)
        return false;
    if (isatty(STDIN_FILENO) == 1)
        return terminal == INPUT_TERMINAL && is_foreground();
    if (S_ISREG(st.st_mode))
        return left_in_file(&st) > 0;
    if (S_ISCHR(st.st_mode))
        return st.st_rdev != makedev(1, 3);
    return !S_ISDIR(st.st_mode);
}

bool input_is_fresh_file(void)
{
    struct stat st;
    return input_is_there(INPUT_NO_TERMINAL) && fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) &&
           left_in_file(&st) == st.st_size;
}

void input_leave_rest(uint64_t taken, uint64_t unused)
{
    struct stat st;
    if (unused == 0 || fstat(STDIN_FILENO, &st) < 0)
        return;
    if (S_ISREG(st.st_mode))
        (void)lseek(STDIN_FILENO, -(off_t)unused, SEEK_CUR);
    else if (unused == taken && isatty(STDIN_FILENO) != 1)
        input_say_unused(unused);
}

/* Otherwise a pipe would have a reader even after the sender has ended, and its writer would wait for
 * ever. */
static void close_input(void)
{
    _cleanup_close_ int fd = isatty(STDIN_FILENO) == 1 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)dup2(fd, STDIN_FILENO);
}

int input_feed_start(struct input_feed *feed, struct call *call, uint64_t job, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        input_send(call, job, pair[1]);
    }
    int r = pid < 0 ? -errno : 0;
    (void)close(pair[1]);
    if (r < 0) {
        (void)close(pair[0]);
        return error_set_errno(err, r, "cannot start a process for standard input");
    }
    *feed = (struct input_feed){ .pid = pid, .fd = pair[0] };
    close_input();
    return 0;
}

static void order(const struct input_feed *feed, enum input_word word, int64_t attempt)
{
    const struct input_order order = { .word = word, .attempt = attempt };
    (void)send(feed->fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void input_feed_run(struct input_feed *feed, int64_t attempt)
{
    if (feed == NULL || feed->pid == 0 || feed->attempt == attempt)
        return;
    feed->attempt = attempt;
    order(feed, INPUT_RUN, attempt);
}

void input_feed_over(struct input_feed *feed)
{
    if (feed != NULL && feed->pid != 0)
        order(feed, INPUT_OVER, 0);
}

void input_feed_end(struct input_feed *feed)
{
    if (feed->pid == 0)
        return;
    order(feed, INPUT_LEAVE, 0); // if the job has ended, that was reported before
    struct pollfd wanted = { .fd = feed->fd, .events = 0 };
    if (poll(&wanted, 1, LEAVE_MS) <= 0)
        (void)kill(feed->pid, SIGKILL);
    (void)close(feed->fd);
    while (waitpid(feed->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    feed->pid = 0;
}
