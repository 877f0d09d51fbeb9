/* SPDX-License-Identifier: MIT */
/* Packets that carry at most one file descriptor (SCM_RIGHTS, unix(7)), and how many may be open. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sends the packet, with `fd` unless it is -1. Returns 0 or a negative errno. */
int descriptor_send(int socket, const void *packet, size_t length, int fd);

/* The same for a peer that may have been stopped: -EAGAIN while it has not read earlier packets. Descriptors
 * in unread packets count against a limit that all processes of the user share. */
int descriptor_offer(int socket, const void *packet, size_t length, int fd);

/*
 * Receives a packet of exactly `length` bytes. Returns 1 and sets *ret_fd to the descriptor it carried
 * (close-on-exec) or -1; 0 if the peer has closed; -EBADMSG for a packet of another length; else a negative
 * errno. No descriptor is left open on failure.
 */
int descriptor_receive(int socket, void *packet, size_t length, int *ret_fd);

/* Raises the soft limit of open descriptors to `wanted`, or as close to it as the hard limit permits. Returns
 * the previous soft limit, or 0 if nothing was changed. */
uint64_t descriptors_allow(uint64_t wanted);
