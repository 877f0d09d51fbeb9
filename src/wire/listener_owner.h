/* SPDX-License-Identifier: MIT */
/* Finds the owner of the socket that listens at a loopback address, through sock_diag(7). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* True for addresses that no other machine can have: 127.0.0.0/8 and ::1. */
bool listener_is_loopback(const struct sockaddr *address);

/* The uid that owns the listening socket. False if there is none, if the address is not loopback, or if the
 * kernel does not answer. */
bool listener_owner(const struct sockaddr *address, uint32_t *ret_uid);
