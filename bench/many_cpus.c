/* SPDX-License-Identifier: MIT */
/* Preloaded by bench/running: the machine seems to have as many CPUs as its jobs request. */
#include <sched.h>
#include <string.h>

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
    (void)memset(ret, 0xff, size);
    return 0;
}
