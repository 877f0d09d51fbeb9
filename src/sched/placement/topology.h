/* SPDX-License-Identifier: MIT */
/* Chooses which GPUs of a node to allocate together. */
#pragma once

#include <stdint.h>

#include "sched/cluster/cluster.h"

/*
 * Moves the `count` of these `n` GPUs (positions in the node) that are closest to each other to the front:
 * all connected by NVLink, else on one PCIe switch, else on one NUMA node. Among equally close sets, prefers
 * the one that leaves the closest rest, then the lowest indexes. The chosen ones are ordered by index.
 */
void topology_choose(const struct cluster_node *node, uint32_t *positions, uint32_t n, uint32_t count);
