/* SPDX-License-Identifier: MIT */
/*
 * S opens the terminal, so the job's own view of /dev does not matter, and gives it to the user. The socket
 * for visits is bound in the spool directory, where only the agent can reach it. It survives restarts of the
 * agent and mgpud, so both find the terminal again.
 */
#include "shepherd/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/spool.h"
#include "shepherd/terminal_idle.h"

#define DRAIN_MS 3000 // time for a disk to take the last output; then the end is reported without it
#define GONE_MS  (TERMINAL_KEEP_MS + 15000) // T exits by itself before that

void terminal_init(struct terminal *terminal)
{
    *terminal = (struct terminal){ .sink_fd = -1,
        .source_fds = { -1, -1 },
        .job_fds = { -1, -1, -1 },
        .door_fd = -1,
        .channel_fd = -1,
        .seen_fd = -1,
        .pidfd = -1 };
}

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static void set_size(int fd, const struct launch_spec *spec)
{
    struct winsize size = {
        .ws_row = (unsigned short)(spec->tty_rows > 0 ? spec->tty_rows : TERMINAL_ROWS),
        .ws_col = (unsigned short)(spec->tty_columns > 0 ? spec->tty_columns : TERMINAL_COLUMNS),
    };
    (void)ioctl(fd, TIOCSWINSZ, &size);
}

static int open_tty(struct terminal *terminal, const struct launch_spec *spec)
{
    int unlock = 0;
    terminal->sink_fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (terminal->sink_fd < 0 || ioctl(terminal->sink_fd, TIOCSPTLCK, &unlock) < 0)
        return -errno;
    terminal->source_fds[0] = fcntl(terminal->sink_fd, F_DUPFD_CLOEXEC, 0);
    int fd = terminal->job_fds[0] = ioctl(terminal->sink_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->source_fds[0] < 0 || fd < 0)
        return -errno;
    if (geteuid() == 0 && (fchown(fd, spec->uid, spec->gid) < 0 || fchmod(fd, 0600) < 0))
        return -errno;
    struct termios modes;
    if (tcgetattr(fd, &modes) == 0) {
        modes.c_iflag |= IUTF8;
        (void)tcsetattr(fd, TCSANOW, &modes);
    }
    set_size(terminal->sink_fd, spec);
    terminal->job_fds[1] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    terminal->job_fds[2] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return terminal->job_fds[1] < 0 || terminal->job_fds[2] < 0 ? -errno : 0;
}

/* The user may open /dev/stdout, which checks the owner of the pipe. */
static int open_pipe(int *ret_ours, int *ret_theirs, bool is_input, const struct launch_spec *spec)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_ours = ends[is_input ? 1 : 0];
    *ret_theirs = ends[is_input ? 0 : 1];
    if (geteuid() == 0 && fchown(*ret_theirs, spec->uid, spec->gid) < 0)
        return -errno;
    return set_nonblocking(*ret_ours);
}

static int open_pipes(struct terminal *terminal, const struct launch_spec *spec)
{
    int r = open_pipe(&terminal->sink_fd, &terminal->job_fds[0], true, spec);
    for (int i = 0; r == 0 && i < TERMINAL_SOURCES; i++)
        r = open_pipe(&terminal->source_fds[i], &terminal->job_fds[i + 1], false, spec);
    return r;
}

static int bind_door(struct terminal *terminal)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SPOOL_TTY };
    (void)unlink(SPOOL_TTY);
    terminal->door_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (terminal->door_fd < 0 ||
        bind(terminal->door_fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return 0;
}

int terminal_open(struct terminal *terminal, const struct launch_spec *spec)
{
    if (!spec->is_tty && !spec->is_exec_step && !spec->is_input_sent)
        return 0;
    terminal->is_open = true;
    int r = spec->is_tty         ? open_tty(terminal, spec)
            : spec->is_exec_step ? open_pipes(terminal, spec)
                                 : open_pipe(&terminal->sink_fd, &terminal->job_fds[0], true, spec);
    if (r == 0 && spec->is_tty && !spec->is_exec_step && launch_ask(spec)->tty_idle_ms > 0) {
        terminal->seen_fd = terminal_idle_make();
        r = terminal->seen_fd < 0 ? terminal->seen_fd : 0;
    }
    return r == 0 ? bind_door(terminal) : r;
}

static void close_ours(struct terminal *terminal)
{
    int *fds[] = { &terminal->sink_fd, &terminal->source_fds[0], &terminal->source_fds[1], &terminal->door_fd,
        &terminal->seen_fd };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        closep(fds[i]);
}

static void close_theirs(struct terminal *terminal)
{
    for (int i = 0; i < 3; i++)
        closep(&terminal->job_fds[i]);
}

void terminal_drop(const struct terminal *terminal)
{
    const int fds[] = { terminal->sink_fd, terminal->source_fds[0], terminal->source_fds[1],
        terminal->door_fd, terminal->channel_fd, terminal->seen_fd, terminal->pidfd };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

/* Its end sends no signal, so it is not among the children that the step waits for. */
static pid_t clone_silently(int *ret_pidfd)
{
    struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uintptr_t)ret_pidfd };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    return pid < 0 ? -errno : pid;
}

void terminal_keep_only(const struct terminal_setup *setup)
{
    int kept[] = { STDERR_FILENO, setup->sink_fd, setup->source_fds[0], setup->source_fds[1], setup->door_fd,
        setup->channel_fd, setup->log_fd, setup->seen_fd, setup->host_fd };
    const size_t count = sizeof(kept) / sizeof(kept[0]);
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && kept[k] < kept[k - 1]; k--) {
            int other = kept[k];
            kept[k] = kept[k - 1];
            kept[k - 1] = other;
        }
    for (size_t i = 0; i < count; i++) {
        unsigned first = (unsigned)(kept[i] + 1), next = i + 1 < count ? (unsigned)kept[i + 1] : ~0U;
        if (kept[i] >= STDERR_FILENO && first < next)
            (void)close_range(first, i + 1 < count ? next - 1 : ~0U, 0);
    }
}

int terminal_start(struct terminal *terminal, const struct launch_spec *spec, int log_fd, int host_fd)
{
    int pair[2];
    if (!terminal->is_open)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    close_theirs(terminal);
    pid_t pid = clone_silently(&terminal->pidfd);
    if (pid == 0) {
        struct terminal_setup setup = { .spec = spec,
            .sink_fd = terminal->sink_fd,
            .source_fds = { terminal->source_fds[0], terminal->source_fds[1] },
            .door_fd = terminal->door_fd,
            .channel_fd = pair[1],
            .log_fd = log_fd,
            .seen_fd = terminal->seen_fd,
            .host_fd = host_fd };
        if (spec->is_tty || spec->is_exec_step)
            terminal_run(&setup);
        input_run(&setup);
    }
    (void)close(pair[1]);
    terminal->channel_fd = pair[0];
    close_ours(terminal);
    if (pid < 0)
        return (int)pid;
    terminal->pid = pid;
    return 0;
}

/* Viewers may send commands meanwhile; only this byte counts. False if the time is up. */
static bool await_drained(int channel_fd)
{
    struct spool_command command;
    int64_t deadline_ms = clock_boot_ms() + DRAIN_MS;
    for (;;) {
        struct pollfd wanted = { .fd = channel_fd, .events = POLLIN };
        int64_t left_ms = deadline_ms - clock_boot_ms();
        if (left_ms <= 0 || poll(&wanted, 1, (int)left_ms) < 0)
            return false;
        if (wanted.revents == 0)
            continue;
        ssize_t n = recv(channel_fd, &command, sizeof(command), MSG_DONTWAIT);
        if (n == 0 || n == 1)
            return true;
    }
}

/* False if it is still alive. */
static bool await_gone(int pidfd)
{
    struct pollfd wanted = { .fd = pidfd, .events = POLLIN };
    return poll(&wanted, 1, GONE_MS) > 0;
}

/* True if its user has stopped it with a signal. A process that waits for a disk does not count as stopped,
 * and finishes its work. */
static bool is_stopped(pid_t pid)
{
    char path[40], text[128], state;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && sscanf(end, ") %c", &state) == 1 && (state == 'T' || state == 't');
}

void terminal_finish(
    struct terminal *terminal, const struct launch_exit *exit_record, enum terminal_await await)
{
    struct terminal_end end = { .magic = TERMINAL_END_MAGIC, .code = exit_record->exit_code };
    if (terminal->channel_fd < 0)
        return;
    (void)snprintf(end.text, sizeof(end.text), "%s", exit_record->text != NULL ? exit_record->text : "");
    ssize_t n = send(terminal->channel_fd, &end, sizeof(end), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)process_signal(terminal->pidfd, SIGCONT);
    bool is_sent = n == (ssize_t)sizeof(end), is_drained = false;
    if (is_sent && await == TERMINAL_AWAIT_LOG)
        is_drained = await_drained(terminal->channel_fd);
    if (is_sent && await == TERMINAL_AWAIT_CLIENT)
        is_drained = await_gone(terminal->pidfd);
    if (!is_drained && is_stopped(terminal->pid))
        (void)process_signal(terminal->pidfd, SIGKILL);
}

void terminal_close(struct terminal *terminal)
{
    close_ours(terminal);
    close_theirs(terminal);
    closep(&terminal->channel_fd);
    closep(&terminal->pidfd);
}
