/* SPDX-License-Identifier: MIT */
/* The part of a cluster's idle GPUs that typical pods cannot use (Weng et al., ATC'23), computed from the
 * definition. */
#pragma once

#include "lab/sim/workload.h"
#include "sched/cluster/cluster.h"

struct typical_shape {
    uint32_t cpu_milli, gpus, share; // share: thousandths of each GPU, 0: a CPU pod
    const char *model;               // "a|b", NULL: any
    double weight;
};

struct pack_frag {
    struct typical_shape *shapes;
    size_t n_shapes;
    double *of_node; // at the last computation
    double total;    // thousandths of GPUs
};

/* The typical pods are the most frequent shapes of the workload that together account for 95 % of its
 * pods. */
void pack_frag_init(struct pack_frag *frag, const struct workload *workload, const struct cluster *cluster);
void pack_frag_update(struct pack_frag *frag, const struct cluster *cluster, uint32_t node);
void pack_frag_clear(struct pack_frag *frag);
