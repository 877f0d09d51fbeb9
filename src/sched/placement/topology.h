/* SPDX-License-Identifier: MIT */
/* Which GPUs of one node to give together. */
#pragma once

#include <stdint.h>

#include "sched/cluster/cluster.h"

/*
 * Brings the `count` of the `n` GPUs at these positions of the node to the front that are closest to each
 * other: NVLink between all of them, else one PCIe switch, else one NUMA node. Of equally close sets the one
 * that leaves the closest rest, then the one with the lowest indexes. The chosen ones are in order of their
 * index.
 */
void topology_choose(const struct cluster_node *node, uint32_t *positions, uint32_t n, uint32_t count);
