/* SPDX-License-Identifier: MIT */
/* glibc has names for signals only since 2.32, and not in a static program. */
#include "base/signals.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[NSIG] = {
    [SIGHUP] = "HUP",
    [SIGINT] = "INT",
    [SIGQUIT] = "QUIT",
    [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP",
    [SIGABRT] = "ABRT",
    [SIGBUS] = "BUS",
    [SIGFPE] = "FPE",
    [SIGKILL] = "KILL",
    [SIGUSR1] = "USR1",
    [SIGSEGV] = "SEGV",
    [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE",
    [SIGALRM] = "ALRM",
    [SIGTERM] = "TERM",
    [SIGCHLD] = "CHLD",
    [SIGCONT] = "CONT",
    [SIGSTOP] = "STOP",
    [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN",
    [SIGTTOU] = "TTOU",
    [SIGURG] = "URG",
    [SIGXCPU] = "XCPU",
    [SIGXFSZ] = "XFSZ",
    [SIGVTALRM] = "VTALRM",
    [SIGPROF] = "PROF",
    [SIGWINCH] = "WINCH",
    [SIGIO] = "IO",
    [SIGPWR] = "PWR",
    [SIGSYS] = "SYS",
};

static int find_number(const char *text)
{
    long number = strtol(text, NULL, 10);
    return number > 0 && number < NSIG ? (int)number : 0;
}

int signal_find(const char *text)
{
    if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0')
        return find_number(text);
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (int signal = 1; signal < NSIG; signal++)
        if (names[signal] != NULL && strcasecmp(names[signal], name) == 0)
            return signal;
    return 0;
}

const char *signal_name(int signal)
{
    return signal > 0 && signal < NSIG ? names[signal] : NULL;
}
