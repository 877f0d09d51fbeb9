/* SPDX-License-Identifier: MIT */
/* Binds listening sockets, possibly while mgpud is still root. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* "HOST:PORT" or "[ADDRESS]:PORT" of the option `option`. -EADDRINUSE: the sentence names the port. */
int sockets_listen_tcp(const char *option, const char *where, int *ret_fd, struct error *err);

/* The sockets of one port. */
#define SOCKETS_MAX 2U
struct sockets {
    int fds[SOCKETS_MAX]; // listening
    size_t count;         // 0: none
    bool lacks_six;       // [::1] belongs to them, but this machine has no IPv6
    int reserved_fd;      // bound, and refuses connections: the same port of [::]; -1: none
};
#define SOCKETS_EMPTY                                                                                        \
    {                                                                                                        \
        .fds = { -1, -1 }, .reserved_fd = -1                                                                 \
    }

/*
 * Listens at all addresses by which a browser may reach this port under one name, or at none: `localhost` is
 * both 127.0.0.1 and ::1, so where one of them is asked for, both are taken. A program of another user at the
 * other one could otherwise answer in mgpud's name. With 0.0.0.0, the port of IPv6 is reserved if possible.
 *
 * `ret` is touched only on success. On -EADDRINUSE the sentence names the port and its owner, and
 * *ret_is_stranger is true unless that is root, `trusted_uid` or this process's user.
 */
int sockets_listen_all(const char *option, const char *where, uid_t trusted_uid, struct sockets *ret,
    bool *ret_is_stranger, struct error *err);

/* For `lacks_six`: takes [::1] after all. Returns the new descriptor, which is ret->fds[1]; otherwise as
 * above, with -EADDRNOTAVAIL while there is no IPv6. */
int sockets_add_six(
    const char *where, uid_t trusted_uid, struct sockets *sockets, bool *ret_is_stranger, struct error *err);

void sockets_close(struct sockets *sockets);
