/* SPDX-License-Identifier: MIT */
/* Where the controllers of this node's cluster are, as the leading one said last: a file in STATE/node. */
#pragma once

#include "base/error.h"

#define NODE_ADDRESSES_FILE "controllers"

/* Keeps "HOST:PORT,..." if it is such a list and differs from the one that is kept. */
int node_addresses_save(const char *state_dir, const char *text, struct error *err);

/* The list; NULL: none is known. The caller frees it. */
char *node_addresses_load(const char *state_dir);
