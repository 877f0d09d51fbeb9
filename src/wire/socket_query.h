/* SPDX-License-Identifier: MIT */
/* Queries the kernel about one TCP socket of this network namespace (sock_diag(7)). */
#pragma once

#include <linux/inet_diag.h>
#include <stdbool.h>

/* Completes and sends `query`, whose family, states and addresses identify the socket. False if the kernel
 * knows none. It may return another one, so the caller compares; one without an owner has idiag_uid
 * UINT32_MAX. */
bool socket_query(const struct inet_diag_req_v2 *query, struct inet_diag_msg *ret);
