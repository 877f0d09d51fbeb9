/* SPDX-License-Identifier: MIT */
/* The Model Context Protocol on standard input and output: JSON-RPC, one message on each line. */
#pragma once

#include "cli/mcp/tools.h"

/* Answers messages until the end of the input. */
int mcp_serve(const struct mcp *mcp, struct error *err);
