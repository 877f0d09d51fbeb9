/* SPDX-License-Identifier: MIT */
/* What there is to give and what is given: nodes, their GPUs and the ledger of bookings. Pure: no clock, no
 * I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/event.h"

#define SHARE_SLOTS_MAX 63U // shares of one GPU at a time; slot 0 means the whole GPU

/* What one request asks for; jobs with equal requests of one owner wait in one class. */
struct sched_request {
    uint32_t gpus;
    uint64_t gpu_mem; // bytes on each GPU, shared; 0: each GPU exclusively
    uint32_t *ids;    // exactly these, in this order; NULL: any
    size_t n_ids;
};

struct cluster_gpu {
    uint32_t index;
    char *uuid;
    uint64_t memory_bytes;
    bool is_known;        // the node has it, whether or not it answers now
    bool is_present;      // it is known and answers
    bool is_exclusive;    // one job has all of it
    uint64_t share_slots; // bit n: slot n is taken, n in 1..SHARE_SLOTS_MAX
    uint64_t memory_booked;
    bool is_claimed; // during a pass: kept for a job earlier in the queue
};

struct cluster_node {
    char *name;
    bool is_up;
    bool is_described;        // it has said what it has; until then nobody can say what it could not run
    uint32_t cpus;            // jobs without GPUs it may run at a time
    uint32_t cpu_jobs;        // how many it runs
    struct cluster_gpu *gpus; // in order of index
    size_t n_gpus;
};

struct cluster {
    struct cluster_node *nodes;
    size_t n_nodes;
};

void cluster_clear(struct cluster *cluster);

struct cluster_node *cluster_find(const struct cluster *cluster, const char *name);
struct cluster_gpu *cluster_find_gpu(const struct cluster_node *node, const char *uuid);

/* The node is there with these CPUs; its GPUs follow by cluster_set_gpu. Bookings stay. */
struct cluster_node *cluster_set_node(struct cluster *cluster, const char *name, uint32_t cpus);
void cluster_set_gpu(
    struct cluster_node *node, uint32_t index, const char *uuid, uint64_t memory_bytes, bool is_present);

/* All its GPUs are gone until cluster_set_gpu names them again. Bookings stay. */
void cluster_forget_gpus(struct cluster_node *node);

/* Books or gives back what an attempt holds; unknown nodes and GPUs are remembered as absent ones. */
void cluster_book(struct cluster *cluster, const char *node, const struct record_list *grants);
void cluster_release(struct cluster *cluster, const char *node, const struct record_list *grants);

/* Nothing at all is booked on it. */
bool cluster_gpu_is_empty(const struct cluster_gpu *gpu);

/* Room for this request's part on one GPU, bookings counted, claims not. */
bool cluster_gpu_fits(const struct cluster_gpu *gpu, const struct sched_request *request);

/* Could it run on the idle cluster? -ERANGE with a sentence when never. A cluster without nodes cannot tell:
 * 0. */
int cluster_check(const struct cluster *cluster, const struct sched_request *request, struct error *err);

/* The ledger's own rules, for tests: no GPU both exclusive and shared, no more memory booked than there is.
 */
int cluster_invariant(const struct cluster *cluster, struct error *err);
