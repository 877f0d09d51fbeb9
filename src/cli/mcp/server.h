/* SPDX-License-Identifier: MIT */
/* The Model Context Protocol on standard input and output: JSON-RPC, one message on each line. */
#pragma once

#include <jansson.h>

#include "cli/mcp/tools.h"

/* The answer to one message of `length` bytes, or NULL if it requires none. Never fails: errors are
 * answers. */
json_t *mcp_answer(const struct mcp *mcp, const char *message, size_t length);

/* Answers messages until the end of the input. */
int mcp_serve(const struct mcp *mcp, struct error *err);
