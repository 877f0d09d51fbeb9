/* SPDX-License-Identifier: MIT */
#include "agent/host/pids_max.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define KERNEL_MAX "/proc/sys/kernel/pid_max"

uint32_t pids_max_of(uint64_t kernel_max)
{
    uint64_t quarter = kernel_max / 4;
    return quarter > 0 && quarter < PIDS_MAX_DEFAULT ? (uint32_t)quarter : PIDS_MAX_DEFAULT;
}

uint32_t pids_max_default(void)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, KERNEL_MAX, 64, &text) < 0)
        return PIDS_MAX_DEFAULT;
    return pids_max_of(strtoull(buffer_text(&text), NULL, 10));
}
