/* SPDX-License-Identifier: MIT */
#include "agent/host/run_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

#define RESERVE_FILE  "reserve"
#define RESERVE_BYTES (256 * 1024)
#define RESERVE_STEP  (32 * 1024) // for several verdicts: each occupies a page until its attempt is released

struct run_reserve {
    int fd; // -1: there is none
    off_t size;
};

struct run_reserve *run_reserve_open(int dirfd)
{
    struct run_reserve *reserve = xcalloc(1, sizeof(*reserve));
    reserve->fd = openat(dirfd, RESERVE_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    run_reserve_fill(reserve);
    return reserve;
}

void run_reserve_close(struct run_reserve *reserve)
{
    if (reserve == NULL)
        return;
    closep(&reserve->fd);
    free(reserve);
}

bool run_reserve_use(struct run_reserve *reserve, int r)
{
    if ((r != -ENOSPC && r != -EDQUOT) || reserve->size < RESERVE_STEP ||
        ftruncate(reserve->fd, reserve->size - RESERVE_STEP) < 0)
        return false;
    reserve->size -= RESERVE_STEP;
    return true;
}

void run_reserve_fill(struct run_reserve *reserve)
{
    for (; reserve->fd >= 0 && reserve->size < RESERVE_BYTES; reserve->size += RESERVE_STEP)
        if (fallocate(reserve->fd, 0, reserve->size, RESERVE_STEP) < 0)
            return;
}
