/* SPDX-License-Identifier: MIT */
/* How mgpu_simple_node comes to the token with which its machine joins, and whether the way there is open. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"

/*
 * "HOST:PORT#TOKEN" for the nodes' port of the master: from a file (NULL: that of MGPU_JOIN), else from the
 * master itself when it is on this machine. The caller frees it.
 */
int simple_join_ticket(struct call *call, const char *file, const char *node, char **ret, struct error *err);

/* Tries to connect to the master's port, or the one `further` on, within `timeout_ms`; a failure is told in
 * the words of the C library, with what to do. */
int simple_join_try_way(unsigned further, int timeout_ms, struct error *err);
