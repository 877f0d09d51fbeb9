/* SPDX-License-Identifier: MIT */
/* Who is at the other end of a connection, in the kernel's word. Anything unclear is "unknown". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer {
    bool is_known;
    uint32_t uid, gid;
};

/* The process that connected this unix socket (SO_PEERCRED). */
struct peer peer_of_unix(int fd);

/* The owner of the other end of a TCP connection within this machine's loopback (sock_diag(7)); the group is
 * the owner's main group. */
struct peer peer_of_loopback(int fd);
