/* SPDX-License-Identifier: MIT */
/* How mgpu_simple_node obtains the token with which its machine joins, and checks the connection. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"

/*
 * "HOST:PORT#TOKEN" for the master's port for nodes: from a file (NULL: the one named by MGPU_JOIN), else
 * from the master itself if it is on this machine. The caller frees it.
 */
int simple_join_ticket(struct call *call, const char *file, const char *node, char **ret, struct error *err);

/* Tries to connect to the master's port plus `further` within `timeout_ms`; a failure is reported in the C
 * library's words, with a hint. */
int simple_join_try_way(unsigned further, int timeout_ms, struct error *err);
