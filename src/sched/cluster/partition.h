/* SPDX-License-Identifier: MIT */
/* Partitions inside the cluster room. */
#pragma once

#include "sched/cluster/cluster.h"

/* Sets the partitions of a new node. */
void cluster_place_node(const struct cluster *cluster, struct cluster_node *node);
