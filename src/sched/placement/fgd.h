/* SPDX-License-Identifier: MIT */
/*
 * Placement by what a node is worth to others, in parts: what is typically asked for (fgd_typical.c), what
 * the rest of a GPU is worth to that (fgd_holes.c) and a whole node (fgd_value.c), what a request would cost
 * on one node (fgd_score.c), and where it costs least (placement_fgd.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/cluster/cluster.h"

#define TYPICAL_MAX 64U
#define HOLE_UNITS  100U // prices are kept for hundredths of a GPU

/* A node as a rule sees it: only GPUs that may be given out. */
struct fgd_node {
    uint32_t cpu_milli;
    uint64_t memory;    // UINT64_MAX: not counted
    uint64_t models;    // bit m % 64
    uint64_t gpu_bytes; // of its largest GPU
    uint32_t n;
    uint16_t free[NODE_GPUS_LIMIT]; // thousandths of each GPU, the scarcer of share and memory
    uint16_t gpu[NODE_GPUS_LIMIT];  // its position
};

/* What many requests ask of one node. */
struct fgd_shape {
    uint32_t cpu_milli;
    uint64_t memory; // the least that any of them asked
    uint32_t gpus;
    uint32_t share;   // thousandths of each: SHARE_WHOLE for a whole GPU; 0 for memory alone, or without GPUs
    uint64_t gpu_mem; // for requests by memory alone
    uint64_t models;  // bits that do; 0: any
    double weight;    // of all typical ones together 1
};

struct fgd_typicals {
    struct fgd_shape shapes[TYPICAL_MAX]; // in order of share
    size_t n;
    double gpu_weight;            // of those that ask for GPUs
    double holes[HOLE_UNITS + 1]; // what so much of a GPU is worth, in whole ones
    uint64_t epoch;               // grows when they change
    bool is_all_plain;            // nothing but whole GPUs of any model, without CPUs or memory
};

/* Counts of what was asked for; they fade, so that the typical shapes follow the users. */
struct fgd_counts {
    struct fgd_count *items;
    size_t n;
    double total;    // of the counts
    double seen;     // ever
    double next;     // seen at which the typical shapes are made anew
    size_t n_models; // of the cluster when they were made
    struct fgd_typicals typicals;
};

void fgd_counts_init(struct fgd_counts *counts);
void fgd_counts_clear(struct fgd_counts *counts);
void fgd_counts_learn(struct fgd_counts *counts, const struct cluster *cluster,
    const struct sched_request *request, double weight);
/* Makes the typical shapes anew when enough was learnt since. */
void fgd_counts_settle(struct fgd_counts *counts, const struct cluster *cluster);

void fgd_node_read(const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *ret);

/* Thousandths of a GPU that this much memory of it is, rounded up; more than SHARE_WHOLE when it has less. */
uint32_t fgd_memory_share(uint64_t gpu_mem, uint64_t gpu_bytes);

/* demand[m]: how often m hundredths of one GPU are asked for. The whole GPU is worth 1, nothing 0. */
void fgd_holes(const double demand[HOLE_UNITS + 1], double ret[HOLE_UNITS + 1]);

/* What a state of a node is worth, and how much better one choice is than another. Higher is better. */
struct fgd_rule {
    double (*value)(const struct fgd_node *node, const struct fgd_typicals *typicals);
    float (*score)(double before, double after);
    float slope;         // what the last node of an order fixed by the names loses against the first
    uint32_t at_once;    // nodes scored for one decision at most
    bool takes_tightest; // a share goes to the GPU with least free, else to the one with the highest score
    bool is_for_shares;  // while only whole GPUs are asked for, best fit is used instead
};

extern const struct fgd_rule fgd_rule_plus;
extern const struct fgd_rule fgd_rule_plain;
extern const struct fgd_rule fgd_rule_best_fit;

#define SCORE_NO_GPUS 1e6F // of nodes without GPUs for jobs without: better than any node with some

/* The score of the node, in this state, for the request; -INFINITY: it does not fit. `view` is used up. */
float fgd_score(const struct fgd_rule *rule, const struct fgd_typicals *typicals,
    const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *view,
    const struct sched_request *request, int32_t *ret_gpu);
