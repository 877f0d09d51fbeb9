/* SPDX-License-Identifier: MIT */
/* Prints which nodes connect and disconnect, as mgpu_simple_master does. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/api/client.h"

struct simple_nodes {
    json_t *known; // names of the nodes that were up at the last check
    bool is_plain; // no symbols
};

void simple_nodes_init(struct simple_nodes *nodes);

/* Checks once; -errno if mgpud did not answer, which is not printed. */
int simple_nodes_check(struct simple_nodes *nodes, struct client *client);

void simple_nodes_clear(struct simple_nodes *nodes);
