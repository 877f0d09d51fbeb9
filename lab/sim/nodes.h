/* SPDX-License-Identifier: MIT */
/* The cluster of a simulation: "64x8", "pool:128" or a list of nodes as CSV. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sched/cluster/cluster.h"

#define SIM_NODES_MAX 1000000U

struct sim_node {
    char *name;
    char *model; // of its GPUs; "": unknown
    uint32_t gpus, cpu_milli;
    uint64_t memory; // bytes, 0: unlimited
};

struct sim_nodes {
    struct sim_node *items;
    size_t count;
    uint64_t gpus; // of all
};

int nodes_read(struct sim_nodes *nodes, const char *text, struct error *err);

/* Adds all of them, up and idle. */
void nodes_fill_cluster(const struct sim_nodes *nodes, struct cluster *cluster);
void nodes_clear(struct sim_nodes *nodes);
