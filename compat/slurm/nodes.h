/* SPDX-License-Identifier: MIT */
/* Nodes and their states in Slurm's terms. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/api/client.h"

#define SLURM_NODE_FEATURES "slurm_features" // "nvidia,h200": what --constraint takes
#define SLURM_NODE_TYPE     "slurm_type" // "nvidia_h200": type for --gres, if all its GPUs are of one model

/* Members added to nodes here: the resources used by jobs. */
#define SLURM_NODE_CPUS   "slurm_cpus"   // at most those that it has
#define SLURM_NODE_MEMORY "slurm_memory" // bytes
#define SLURM_NODE_WHOLE  "slurm_whole"  // true: a job has the whole node
#define SLURM_NODE_GPUS   "slurm_gpus"   // "0,2-3": indexes; "N/A": none

/* The nodes of the API, each with "gpus_used", the members above and, if it has GPUs, SLURM_NODE_FEATURES.
 * The caller releases the array. */
int slurm_nodes_get(struct client *client, json_t **ret, struct error *err);

const char *slurm_node_state(const json_t *node);         // "idle", "mixed", "drained"
const char *slurm_node_state_compact(const json_t *node); // "idle", "mix", "drain"

/* "gpu:h200:2,gpu:1g.18gb:7": the GPUs of a node; NULL: it has none. The caller frees it. */
char *slurm_node_gres(const json_t *node);

/* "gpu:h200:2", or with indexes "gpu:h200:2(IDX:0-1)": the GPUs allocated to jobs; NULL: the node has none.
 * The caller frees it. */
char *slurm_node_gres_used(const json_t *node, bool has_indexes);

/* "cpu=8,mem=64G,billing=8,gres/gpu=4": the resources of a node, or with `is_used` those allocated to jobs,
 * which may be "". The caller frees it. */
char *slurm_node_tres(const json_t *node, bool is_used);

/* "0,2-3" for a list of numbers, "N/A" for an empty one. The caller frees it. */
char *slurm_indexes_text(const json_t *indexes);
