/* SPDX-License-Identifier: MIT */
/* Asks the kernel about one TCP socket of this network namespace (sock_diag(7)). */
#pragma once

#include <linux/inet_diag.h>
#include <stdbool.h>

/* Fills in the rest of `query`, whose family, states and addresses say which socket is meant. False when the
 * kernel knows none. It may answer about another one, so the caller compares; one without an owner has
 * idiag_uid UINT32_MAX. */
bool socket_query(const struct inet_diag_req_v2 *query, struct inet_diag_msg *ret);
