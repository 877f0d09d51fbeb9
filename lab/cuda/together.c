/* SPDX-License-Identifier: MIT */
/*
 * Several processes of one job that use the GPU side by side. They are made before the driver is loaded,
 * because what it has opened does not survive a fork; this process only waits for them.
 */
#include "lab/cuda/together.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int probe_together(const struct probe_options *options,
    int (*run)(const struct probe_options *options, void *arg), void *arg)
{
    size_t failed = 0;
    for (int64_t i = 0; i < options->processes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(run(options, arg));
        failed += pid < 0;
    }
    for (int status; wait(&status) > 0 || errno == EINTR;)
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != PROBE_OK;
    (void)printf("{\"result\":\"%s\",\"processes\":%lld,\"failed\":%zu}\n", failed == 0 ? "passed" : "failed",
        (long long)options->processes, failed);
    return failed == 0 ? PROBE_OK : PROBE_WRONG;
}
