/* SPDX-License-Identifier: MIT */
/* TCP connections with a timeout. */
#pragma once

#include <netdb.h>

void addresses_free(struct addrinfo **found);
#define _cleanup_addresses_ _cleanup_(addresses_free)

/* As getaddrinfo(3): 0, or an EAI_ code. `port` may be NULL. */
int addresses_find(const char *host, const char *port, struct addrinfo **ret);

/* A connected, blocking socket; -ETIMEDOUT after `timeout_ms`, or the error of connect(2). */
int tcp_connect(const struct addrinfo *address, int timeout_ms, int *ret_fd);
