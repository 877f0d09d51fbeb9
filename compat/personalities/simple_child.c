/* SPDX-License-Identifier: MIT */
/* The terminal sends Ctrl-C to both processes; other signals reach only this one. */
#include "compat/personalities/simple_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/leaving_signals.h"
#include "cli/options/talk.h"
#include "compat/personalities/compat_common.h"

static _Noreturn void be_child(const struct strings *words, int input, int output, pid_t parent)
{
    struct error err = { 0 };
    sigset_t set;
    leaving_signals(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_SELF);
    if (input < 0)
        input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)dup2(input, STDIN_FILENO);
    if (output >= 0)
        (void)dup2(output, STDERR_FILENO);
    (void)compat_execute(words, &err);
    talk_error(NULL, &err);
    _exit(EXIT_SELF);
}

int simple_child_start(
    struct simple_child *child, const struct strings *words, int input, bool is_captured, struct error *err)
{
    int output[2] = { -1, -1 };
    sigset_t set;
    leaving_signals(&set);
    *child = (struct simple_child)SIMPLE_CHILD_NONE;
    if (is_captured && pipe2(output, O_CLOEXEC) < 0)
        return error_set_errno(err, -errno, "cannot create a pipe");
    _cleanup_close_ int ours = output[0], theirs = output[1];
    child->signal_fd = leaving_signals_open(&set, err);
    if (child->signal_fd < 0)
        return child->signal_fd;
    pid_t self = getpid();
    child->pid = fork();
    if (child->pid == 0)
        be_child(words, input, theirs, self);
    if (child->pid < 0)
        return error_set_errno(err, -errno, "cannot start %s", words->items[0]);
    child->pid_fd = pidfd_open(child->pid, 0);
    if (child->pid_fd < 0)
        return error_set_errno(err, -errno, "cannot watch %s", words->items[0]);
    child->stderr_fd = take_fd(&ours);
    return 0;
}

static void pass_signal(const struct simple_child *child)
{
    struct signalfd_siginfo signal;
    if (read(child->signal_fd, &signal, sizeof(signal)) != (ssize_t)sizeof(signal))
        return;
    bool has_had_it = signal.ssi_signo == SIGINT && signal.ssi_code == SI_KERNEL;
    if (!has_had_it)
        (void)pidfd_send_signal(child->pid_fd, SIGTERM, NULL, 0);
}

int simple_child_wait(struct simple_child *child, int also_fd, int wait_ms)
{
    struct pollfd wanted[] = {
        { .fd = child->stderr_fd, .events = POLLIN },
        { .fd = child->signal_fd, .events = POLLIN },
        { .fd = child->pid_fd, .events = POLLIN },
        { .fd = also_fd, .events = POLLIN },
    };
    if (poll(wanted, sizeof(wanted) / sizeof(wanted[0]), wait_ms) < 0)
        return 0;
    if (wanted[1].revents != 0)
        pass_signal(child);
    if ((wanted[0].revents & POLLIN) != 0)
        return 1; // its last output is read before its end is reported
    if (wanted[2].revents != 0)
        return -ECHILD;
    if (wanted[0].revents != 0)
        closep(&child->stderr_fd);
    return wanted[3].revents != 0;
}

int simple_child_status(struct simple_child *child)
{
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL_BASE + WTERMSIG(status);
}

void simple_child_clear(struct simple_child *child)
{
    if (child->pid > 0) {
        (void)kill(child->pid, SIGTERM);
        (void)simple_child_status(child);
    }
    closep(&child->pid_fd);
    closep(&child->signal_fd);
    closep(&child->stderr_fd);
}
