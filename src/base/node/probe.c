/* SPDX-License-Identifier: MIT */
#include "base/node/probe.h"

#include <errno.h>
#include <sys/wait.h>

int probe_wait(pid_t pid, const char *what, struct error *err)
{
    int status;
    pid_t ended;
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start a process");
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended < 0 || !WIFEXITED(status))
        return error_set(err, -ECHILD, "the process that tried it did not end on its own");
    return WEXITSTATUS(status) == 0 ? 0 : error_set_errno(err, -WEXITSTATUS(status), "%s", what);
}
