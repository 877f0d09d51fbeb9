/* SPDX-License-Identifier: MIT */
/*
 * Selection of nodes and GPUs for a request. fit.c defines what may be allocated now; the strategies for
 * choosing among the candidates are members of a vtable, so that they can be compared and replaced.
 */
#pragma once

#include <stdbool.h>

#include "sched/cluster/cluster.h"
#include "sched/cluster/node_index.h"

/* The job to be placed, and for how long. */
struct fit {
    int64_t now_ms;
    int64_t end_ms;               // expected end: holds that begin later do not exclude it
    int64_t limit_ms;             // certain end (its time limit); TIME_NEVER: none. Reservations use this one
    uint64_t class_number;        // holds for this class are ignored; 0: for none
    const uint64_t *reservations; // ids of the reservations its user may use now
    size_t n_reservations;
    bool may_give_way; // preemptible: may use reserved GPUs before the reservation begins
    /* For a job that can be parked or stopped: it must have the GPU until this time before it returns it to a
     * job that was parked from it. 0: it cannot return it before its certain end. */
    int64_t give_back_ms;
    uint32_t parked_max;    // and at most this many are parked from the GPU
    bool ignores_debts;     // to parked jobs
    bool counts_starts;     // to start now: nodes that already start their maximum of jobs are excluded
    uint64_t gpu_bytes_max; // only GPUs with at most this much memory; 0: any
};

/* The minimum that one node needs to have for the request. */
void request_need(const struct cluster *cluster, const struct sched_request *request, struct node_need *ret);

/* --- fit.c: one node --- */

/* True if the reservation is one that its user may use. */
bool fit_may_use(const struct fit *fit, uint64_t reservation);

/* True if the GPU can take the request now, considering bookings, holds and reservations. */
bool fit_gpu(const struct cluster *cluster, const struct cluster_node *node, const struct cluster_gpu *gpu,
    const struct sched_request *request, const struct fit *fit);

/* True if the node has the CPUs and host memory, considering holds. */
bool fit_host(const struct cluster_node *node, const struct sched_request *request, const struct fit *fit);

/* The number of GPUs of the node that fit, up to `enough`. */
uint32_t fit_count(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct fit *fit, uint32_t enough);

/*
 * Adds `count` GPUs of this node to the allocation, and its CPUs and memory. Chooses GPUs close to each other
 * by NVLink, PCIe switch and NUMA node; for shares, the GPU with least left over, or the GPU `first` if >= 0.
 * The caller has checked that they fit.
 */
void fit_take(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct fit *fit, uint32_t count, int64_t first,
    struct allocation *allocation);

/* The GPU memory, in bytes, that a request for a share or for memory books. */
uint64_t fit_share_memory(const struct cluster_gpu *gpu, const struct sched_request *request);

/* Adds the node's CPUs and memory, once per node. */
void fit_add_host(
    const struct cluster_node *node, const struct sched_request *request, struct allocation *allocation);

/* Adds this GPU (its position in the node), and the node's CPUs and memory if it is the first there. */
void fit_take_pick(const struct cluster_node *node, uint32_t gpu, const struct sched_request *request,
    struct allocation *allocation);

/* --- strategies --- */

struct placement {
    const char *name;
    void *(*open)(void); // creates its state; may be NULL
    void (*close)(void *state);
    bool takes_cpu_jobs; // place() is also called first for requests without GPUs
    /* A request was submitted; used to learn typical shapes. May be NULL. */
    void (*learn)(
        void *state, const struct cluster *cluster, const struct sched_request *request, double weight);
    /* A node has changed. May be NULL. */
    void (*dirty)(void *state, const struct cluster *cluster, uint32_t node);
    /*
     * Places a request on one node (placement_choose handles picks, CPU-only and wide requests): true with
     * the allocation; false if nothing fits now. Books nothing.
     */
    bool (*place)(void *state, const struct cluster *cluster, const struct sched_request *request,
        const struct fit *fit, struct allocation *ret, uint64_t *work);
};

extern const struct placement placement_first_fit; // first node, first GPUs
extern const struct placement
    placement_best_fit;                      // the node (and for shares the GPU) with the least left over
extern const struct placement placement_fgd; // the default: lowest loss of value for typical requests
extern const struct placement placement_fgd_plain;      // as published (Weng et al., ATC'23), for comparison
extern const struct placement placement_best_fit_plain; // best fit as in that comparison
extern const struct placement placement_consolidate;    // as in the reference simulators
extern const struct placement placement_spread;         // the node with the most left over

extern const struct placement *const placements[]; // terminated by NULL
const struct placement *placement_find(const char *name);

/*
 * Places any request: picks as named; wide jobs on as few nodes as possible (completely free nodes first, the
 * rest on the node that fits best); CPU jobs where they disturb GPUs least; everything else with `placement`.
 * All or nothing. Adds the number of nodes examined to *work.
 */
bool placement_choose(const struct placement *placement, void *state, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *ret, uint64_t *work);
