/* SPDX-License-Identifier: MIT */
#include "cli/follow/outlet.h"

#include <errno.h>
#include <unistd.h>

#define WRITE_PIECE 4096U // a ready pipe accepts this much at once (PIPE_BUF): write(2) cannot block

void outlet_add(struct outlet *outlet, const void *bytes, size_t length)
{
    if (!outlet->is_gone)
        foreign_append(&outlet->filter, &outlet->pending, bytes, length);
}

int outlet_write(struct outlet *outlet)
{
    size_t left = outlet->pending.length - outlet->written;
    ssize_t n =
        write(outlet->fd, outlet->pending.bytes + outlet->written, left < WRITE_PIECE ? left : WRITE_PIECE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0) {
        int error = errno;
        outlet->is_gone = true;
        outlet_clear(outlet);
        return -error;
    }
    outlet->written += (size_t)n;
    if (outlet->written == outlet->pending.length)
        outlet->written = outlet->pending.length = 0;
    return 0;
}

void outlet_clear(struct outlet *outlet)
{
    buffer_clear(&outlet->pending);
    outlet->written = 0;
}
