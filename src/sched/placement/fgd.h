/* SPDX-License-Identifier: MIT */
/*
 * Placement by the value of what is left (fragmentation gradient descent). Its parts: typical requests
 * (fgd_typical.c), the value of a partly used GPU to them (fgd_holes.c) and of a whole node (fgd_value.c),
 * the cost of a request on one node (fgd_score.c), and the choice of the cheapest (placement_fgd.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/cluster/cluster.h"

#define TYPICAL_MAX 64U
#define HOLE_UNITS  100U // values are kept per hundredth of a GPU

/* A node as a rule sees it: only GPUs that may be allocated. */
struct fgd_node {
    uint32_t cpu_milli;
    uint64_t memory;    // UINT64_MAX: not limited
    uint64_t models;    // bit m % 64
    uint64_t gpu_bytes; // of its largest GPU
    uint32_t n;
    uint16_t free[NODE_GPUS_LIMIT]; // thousandths of each GPU: the minimum of share and memory
    uint16_t gpu[NODE_GPUS_LIMIT];  // its position
};

/* A typical request of one node. */
struct fgd_shape {
    uint32_t cpu_milli;
    uint64_t memory; // minimum over its requests
    uint32_t gpus;
    uint32_t
        share; // thousandths of each GPU: SHARE_WHOLE for a whole GPU; 0 for memory only, or without GPUs
    uint64_t gpu_mem; // for requests by memory alone
    uint64_t models;  // models that suit it, as bits; 0: any
    double weight;    // the sum over all typical ones is 1
};

struct fgd_typicals {
    struct fgd_shape shapes[TYPICAL_MAX]; // in order of share
    size_t n;
    double gpu_weight;            // total weight of those with GPUs
    double holes[HOLE_UNITS + 1]; // value of this part of a GPU, in whole GPUs
    uint64_t epoch;               // incremented when they change
    bool is_all_plain;            // only whole GPUs of any model, without CPUs or memory
};

/* Counts of requests, with decay, so that the typical shapes follow the users. */
struct fgd_counts {
    struct fgd_count *items;
    size_t n;
    double total;    // total weight of the counts
    double seen;     // number of requests ever counted
    double next;     // value of `seen` at which the typical shapes are recomputed
    size_t n_models; // of the cluster at the last recomputation
    struct fgd_typicals typicals;
};

void fgd_counts_init(struct fgd_counts *counts);
void fgd_counts_clear(struct fgd_counts *counts);
/* `weight`: how many requests this one counts as. */
void fgd_counts_learn(struct fgd_counts *counts, const struct cluster *cluster,
    const struct sched_request *request, double weight);
/* Recomputes the typical shapes if enough requests were counted since. */
void fgd_counts_settle(struct fgd_counts *counts, const struct cluster *cluster);

void fgd_node_read(const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *ret);

/* The thousandths of a GPU that this memory amounts to, rounded up; above SHARE_WHOLE if the GPU has less. */
uint32_t fgd_memory_share(uint64_t gpu_mem, uint64_t gpu_bytes);

/* demand[m]: frequency of requests for m hundredths of one GPU. A whole GPU is worth 1, an unusable part
 * 0. */
void fgd_holes(const double demand[HOLE_UNITS + 1], double ret[HOLE_UNITS + 1]);

/* How the states of a node are valued and choices compared. Higher is better. */
struct fgd_rule {
    double (*value)(const struct fgd_node *node, const struct fgd_typicals *typicals);
    float (*score)(double before, double after);
    float slope;         // score difference between the first and the last position of a node
    uint32_t at_once;    // maximum number of nodes scored per decision
    bool takes_tightest; // a share goes to the GPU with least free, instead of the one with the highest score
    bool is_for_shares;  // best fit is used instead while only whole GPUs are requested
    bool is_by_gpus;     // requests are weighted by their GPUs, instead of equally
};

extern const struct fgd_rule fgd_rule_plus;
extern const struct fgd_rule fgd_rule_plain;
extern const struct fgd_rule fgd_rule_best_fit;

#define SCORE_NO_GPUS 1e6F // for jobs without GPUs, on nodes without GPUs: better than any node with GPUs

/* The score of the node in this state for the request; -INFINITY: it does not fit. `view` is overwritten. */
float fgd_score(const struct fgd_rule *rule, const struct fgd_typicals *typicals,
    const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *view,
    const struct sched_request *request, int32_t *ret_gpu);
