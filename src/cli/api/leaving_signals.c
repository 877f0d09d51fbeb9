/* SPDX-License-Identifier: MIT */
#include "cli/api/leaving_signals.h"

#include <errno.h>
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

bool leaving_ignore_unread(void)
{
    static struct {
        bool is_known, is_ignored;
    } beginning; // before this program changed it
    if (!beginning.is_known)
        beginning.is_ignored = leaving_is_ignored(SIGPIPE);
    beginning.is_known = true;
    (void)signal(SIGPIPE, SIG_IGN);
    return beginning.is_ignored;
}

int leaving_signals_open(const sigset_t *set, struct error *err)
{
    if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
        return error_set_errno(err, -errno, "cannot block signals");
    int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? error_set_errno(err, -errno, "cannot receive signals") : fd;
}
