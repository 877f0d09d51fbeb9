/* SPDX-License-Identifier: MIT */
/* Nodes and their states in Slurm's terms. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/api/client.h"

#define SLURM_NODE_FEATURES "slurm_features" // "nvidia,h200": what --constraint takes

/* The nodes of the API, each with "gpus_used" and, if it has GPUs, SLURM_NODE_FEATURES. The caller releases
 * the array. */
int slurm_nodes_get(struct client *client, json_t **ret, struct error *err);

const char *slurm_node_state(const json_t *node);         // "idle", "mixed", "drained"
const char *slurm_node_state_compact(const json_t *node); // "idle", "mix", "drain"
