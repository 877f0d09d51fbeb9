/* SPDX-License-Identifier: MIT */
/*
 * Which nodes and GPUs a request gets. The rules of what may be given to whom now are in fit.h; ways of
 * choosing among what may be given are members of one vtable, so that they can be compared and replaced.
 */
#pragma once

#include <stdbool.h>

#include "sched/cluster/cluster.h"
#include "sched/cluster/node_index.h"

/* For whom and for how long something is sought. */
struct fit {
    int64_t now_ms;
    int64_t end_ms;    // expected end: what is held for others from an earlier time on is left alone
    int64_t limit_ms;  // certain end (its time limit); TIME_NEVER: none. Reservations count against this one
    const void *owner; // holds of this owner do not count
    const uint64_t *reservations; // ids of the reservations that its user may use now
    size_t n_reservations;
    bool may_give_way; // preemptible: may use reserved GPUs before the reservation begins
};

/* What one node needs to have for it at least. */
void request_need(const struct cluster *cluster, const struct sched_request *request, struct node_need *ret);

/* --- fit.c: one node --- */

/* The reservation is one of those that its user may use. */
bool fit_may_use(const struct fit *fit, uint64_t reservation);

/* The GPU may take the request now, by bookings, holds and reservations. */
bool fit_gpu(const struct cluster *cluster, const struct cluster_node *node, const struct cluster_gpu *gpu,
    const struct sched_request *request, const struct fit *fit);

/* CPUs and host memory of the node may be given, holds counted. */
bool fit_host(const struct cluster_node *node, const struct sched_request *request, const struct fit *fit);

/* How many GPUs of the node fit, at most `enough`. */
uint32_t fit_count(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct fit *fit, uint32_t enough);

/*
 * Adds `count` GPUs of this node to the allocation (the closest to each other by NVLink, PCIe switch and NUMA
 * node; for shares the one with least left over; `first` >= 0: that GPU of the node for a share), and its
 * CPUs and memory. The caller knows that they fit.
 */
void fit_take(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct fit *fit, uint32_t count, int64_t first,
    struct allocation *allocation);

/* The node's CPUs and memory, once for each node. */
void fit_add_host(
    const struct cluster_node *node, const struct sched_request *request, struct allocation *allocation);

/* Adds this very GPU (its position in the node), and the node's CPUs and memory if it is the first there. */
void fit_take_pick(const struct cluster_node *node, uint32_t gpu, const struct sched_request *request,
    struct allocation *allocation);

/* --- ways of choosing --- */

struct placement {
    const char *name;
    void *(*open)(void); // its memory; may be NULL
    void (*close)(void *state);
    bool takes_cpu_jobs; // place() is also asked first for requests without GPUs
    /* A request was seen (submitted): typical shapes are learnt from it. May be NULL. */
    void (*learn)(
        void *state, const struct cluster *cluster, const struct sched_request *request, double weight);
    /* A node was touched. May be NULL. */
    void (*dirty)(void *state, const struct cluster *cluster, uint32_t node);
    /*
     * Chooses for a request that lies on one node (placement_choose has dealt with picks, CPU-only and wide
     * ones): true with the allocation; false when nothing fits now. Books nothing.
     */
    bool (*place)(void *state, const struct cluster *cluster, const struct sched_request *request,
        const struct fit *fit, struct allocation *ret, uint64_t *work);
};

extern const struct placement placement_first_fit; // first node, first GPUs
extern const struct placement placement_best_fit;  // the node (and for shares the GPU) with least left over
extern const struct placement placement_fgd;       // the default: where it costs others least
extern const struct placement placement_fgd_plain; // as published (Weng et al., ATC'23), for comparison
extern const struct placement placement_best_fit_plain; // best fit as they compare with it
extern const struct placement placement_consolidate;    // as the reference simulators do it
extern const struct placement placement_spread;         // the node with the most left over

extern const struct placement *const placements[]; // NULL at the end
const struct placement *placement_find(const char *name);

/*
 * The whole choice: picks as named, wide jobs on as few nodes as possible (whole free nodes first, the rest
 * on the node that fits it best), CPU jobs where GPUs are least disturbed, everything else by `placement`.
 * All or nothing. *work grows by the nodes looked at.
 */
bool placement_choose(const struct placement *placement, void *state, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *ret, uint64_t *work);
