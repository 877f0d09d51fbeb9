/* SPDX-License-Identifier: MIT */
/* A packet with at most one descriptor along (SCM_RIGHTS, unix(7)). */
#pragma once

#include <stddef.h>

/* Sends the packet, and `fd` with it unless it is -1. Returns 0 or a negative errno. */
int descriptor_send(int socket, const void *packet, size_t length, int fd);

/*
 * Receives a packet of exactly `length` bytes: 1, with *ret_fd the descriptor that came along
 * (close-on-exec), or -1; 0 when the other side has closed; -EBADMSG for a packet of another length, else a
 * negative errno. On failure nothing stays open.
 */
int descriptor_receive(int socket, void *packet, size_t length, int *ret_fd);
