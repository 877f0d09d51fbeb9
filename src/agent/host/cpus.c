/* SPDX-License-Identifier: MIT */
#include "agent/host/cpus.h"

#include <sched.h>
#include <unistd.h>

uint32_t cpus_count(void)
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof(own), &own) == 0)
        return (uint32_t)CPU_COUNT(&own);
    return (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}
