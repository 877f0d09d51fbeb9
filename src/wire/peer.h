/* SPDX-License-Identifier: MIT */
/* The identity of a connection's peer, as the kernel reports it. Anything unclear is "unknown". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer {
    bool is_known;
    uint32_t uid, gid;
};

/* The process that connected this unix socket (SO_PEERCRED). */
struct peer peer_of_unix(int fd);

/* The owner of the other end of a loopback TCP connection (sock_diag(7)); the group is the owner's primary
 * group. */
struct peer peer_of_loopback(int fd);
