/* SPDX-License-Identifier: MIT */
/* Whose socket listens at an address of this machine's loopback, in the kernel's word (sock_diag(7)). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* True for an address that no other machine can have: 127.0.0.0/8 and ::1. */
bool listener_is_loopback(const struct sockaddr *address);

/* The user who made the socket that takes new connections there. False when there is none, when the address
 * is not on the loopback, and when the kernel does not tell. */
bool listener_owner(const struct sockaddr *address, uint32_t *ret_uid);
