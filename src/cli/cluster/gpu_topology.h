/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/term/screen.h"

/* Prints a table per node: how each two of its GPUs (of an answer of GET /gpus) are connected, the NUMA node
 * of each, and the same for its network interfaces (`nodes`: of an answer of GET /nodes, or NULL). */
void gpu_topology_print(const json_t *gpus, const json_t *nodes, const struct screen *screen, FILE *out);
