/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/term/screen.h"

/* Prints a table per node: how each two of its GPUs (of an answer of GET /gpus) are connected, and the NUMA
 * node of each. */
void gpu_topology_print(const json_t *gpus, const struct screen *screen, FILE *out);
