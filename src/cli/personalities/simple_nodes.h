/* SPDX-License-Identifier: MIT */
/* Tells on standard output which nodes connect and which are lost, as mgpu_simple_master does. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/api/client.h"

struct simple_nodes {
    json_t *known; // names of nodes that were up at the last look
    bool is_plain; // no symbols
};

void simple_nodes_init(struct simple_nodes *nodes);

/* Looks once; -errno when mgpud did not answer, which is not told. */
int simple_nodes_look(struct simple_nodes *nodes, struct client *client);

void simple_nodes_clear(struct simple_nodes *nodes);
