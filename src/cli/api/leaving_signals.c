/* SPDX-License-Identifier: MIT */
#include "cli/api/leaving_signals.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/signalfd.h>

bool leaving_is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
           action.sa_handler == SIG_IGN;
}

void leaving_signals_add(sigset_t *set, int number)
{
    if (!leaving_is_ignored(number))
        (void)sigaddset(set, number);
}

void leaving_signals(sigset_t *ret)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    (void)sigemptyset(ret);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        leaving_signals_add(ret, numbers[i]);
}

static struct {
    bool is_changed, was_ignored;
} unread; // what this program has changed for SIGPIPE

bool leaving_ignore_unread(void)
{
    if (!unread.is_changed)
        unread.was_ignored = leaving_is_ignored(SIGPIPE);
    unread.is_changed = true;
    (void)signal(SIGPIPE, SIG_IGN);
    return unread.was_ignored;
}

void leaving_restore_unread(void)
{
    if (unread.is_changed && !unread.was_ignored)
        (void)signal(SIGPIPE, SIG_DFL);
}

int leaving_signals_open(const sigset_t *set, struct error *err)
{
    if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
        return error_set_errno(err, -errno, "cannot block signals");
    int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? error_set_errno(err, -errno, "cannot receive signals") : fd;
}

void leaving_outlive_own_end(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    if (getenv("MGPU_JOB_ID") != NULL)
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
}
