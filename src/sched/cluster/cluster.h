/* SPDX-License-Identifier: MIT */
/*
 * What there is to give and what is given: nodes, their GPUs, CPUs and memory, and the ledger of bookings.
 * Pure: no clock, no I/O. Nodes and GPUs are known by their position, which never changes while the cluster
 * lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sched/cluster/request.h"

#define SHARE_SLOTS_MAX 63U // shares of one GPU at a time; slot 0 means the whole GPU
#define NODE_GPUS_LIMIT 256U
#define TIME_NEVER      INT64_MAX

/* GPUs promised to some users for a time (`mgpu reserve`). */
struct cluster_booking {
    uint64_t reservation; // its id
    int64_t from_ms, until_ms;
};

struct cluster_gpu {
    uint32_t index;
    char *uuid;
    uint16_t model; // position in cluster->models
    uint64_t memory_bytes;
    bool is_known;        // the node has it, whether or not it answers now
    bool is_present;      // it is known and answers
    bool is_paused;       // no new jobs, said an administrator
    uint32_t closed;      // bits of enum device_closed: why nothing new may start there
    bool is_exclusive;    // one job has all of it
    uint64_t share_slots; // bit n: slot n is taken, n in 1..SHARE_SLOTS_MAX
    uint32_t share_booked;
    uint32_t adoptee; // pid: what keeps others away is this process alone, which has an adoption that waits
    uint64_t memory_booked;
    uint64_t memory_external; // taken by what is no job: the others share the rest, and nobody gets all of it
    /* Kept for the plan's blocked jobs: from hold_from_ms on this much must be free for them. */
    int64_t hold_from_ms; // TIME_NEVER: nothing is kept
    uint32_t hold_share;  // SHARE_WHOLE: all of it
    uint64_t hold_memory;
    const void *hold_owner;           // for whom; several owners: NULL
    struct cluster_booking *bookings; // reservations, in order of time
    size_t n_bookings;
    /* Where it sits: equal numbers are close. -1: not known. */
    int16_t numa, pcie_switch;
    uint64_t links; // bit k: NVLink to the GPU at position k of the same node
};

struct cluster_node {
    char *name;
    uint32_t position;
    bool is_up;
    bool is_described; // it has said what it has; until then nobody can say what it could not run
    bool is_drained;   // no new jobs, said an administrator
    bool is_counted;   // in cluster->widths
    uint32_t cpu_milli, cpu_booked; // thousandths of a CPU
    uint64_t memory, memory_booked; // bytes; 0: not known, not counted
    uint32_t jobs, jobs_max;        // attempts on it; how many there may be, 0: no limit
    uint32_t dirty_at;              // its place in cluster->dirty, if it is there
    /* Kept for the plan's blocked jobs from hold_from_ms on. */
    int64_t hold_from_ms;
    uint32_t hold_cpu_milli, hold_jobs;
    uint64_t hold_memory;
    const void *hold_owner;
    struct cluster_gpu *gpus; // in the order in which they became known: of index, unless cards move
    size_t n_gpus;
};

struct node_index;
struct node_offer;

struct cluster {
    struct cluster_node *nodes;
    size_t n_nodes;
    char **models; // distinct GPU models; [0] is "" (not known)
    size_t n_models;
    struct node_index *index;     // kept by cluster_touch()
    struct cluster_bucket *names; // nodes by name
    uint32_t *widths;             // how many nodes have how many GPUs that may be given, given away or not
    uint64_t version;             // grows with every cluster_touch()
    uint32_t node_jobs_max;       // jobs_max of nodes to come
    /* Nodes touched since the scheduler last looked, each once. */
    uint32_t *dirty;
    size_t n_dirty;
};

/* What an attempt holds. */
struct alloc_gpu {
    uint32_t node, gpu; // positions
    uint32_t slot;      // 0: all of it
    uint32_t share;     // 0 unless a fraction was asked
    uint64_t memory;    // booked; 0 for a whole GPU
};

struct alloc_node {
    uint32_t node;
    uint32_t cpu_milli;
    uint64_t memory;
};

struct allocation {
    struct alloc_gpu *gpus; // in the order asked for, else by node and index
    size_t n_gpus;
    struct alloc_node *nodes; // each node once, in order of first use
    size_t n_nodes;
};

void cluster_init(struct cluster *cluster);
void cluster_clear(struct cluster *cluster);

/* NULL when unknown. Pointers to nodes are good until the next node is added. */
struct cluster_node *cluster_find(const struct cluster *cluster, const char *name);
struct cluster_gpu *cluster_find_gpu(const struct cluster_node *node, const char *uuid);
struct cluster_gpu *cluster_find_index(const struct cluster_node *node, uint32_t index); // known ones only

/* The node of that name, added (down, without anything) when it is new. */
struct cluster_node *cluster_node(struct cluster *cluster, const char *name);
/* The GPU of that UUID, added (absent) when it is new; bookings of a restart come before the node does. */
struct cluster_gpu *cluster_gpu(struct cluster_node *node, uint32_t index, const char *uuid);

/* The node is up and has this; its GPUs follow by cluster_set_gpu. Bookings stay. */
struct cluster_node *cluster_set_node(
    struct cluster *cluster, const char *name, uint32_t cpu_milli, uint64_t memory);
struct cluster_gpu *cluster_set_gpu(struct cluster *cluster, struct cluster_node *node, uint32_t index,
    const char *uuid, const char *model, uint64_t memory_bytes, bool is_present);

/* At most so many attempts on each node at a time; 0: no limit. */
void cluster_limit_jobs(struct cluster *cluster, uint32_t jobs_max);
/* It has as many attempts as it may have. */
bool cluster_node_is_full(const struct cluster_node *node);

/* All its GPUs are gone until cluster_set_gpu names them again. Bookings stay. */
void cluster_forget_gpus(struct cluster_node *node);

/* After any change of a node that matters to a fit: its row of the index is made anew, it is dirty. */
void cluster_touch(struct cluster *cluster, struct cluster_node *node);

/* What the node offers now, what is held for the plan's blocked jobs counted as free or as taken. */
enum cluster_held { HELD_IS_FREE, HELD_IS_TAKEN };
void cluster_offer(const struct cluster_node *node, enum cluster_held held, struct node_offer *ret);

/* The number of GPUs that may be given of every node that has any, when it is the same for all; else 0. */
uint32_t cluster_width(const struct cluster *cluster);

/* Books or gives back what an attempt holds, and touches the nodes. */
void cluster_book(struct cluster *cluster, const struct allocation *allocation);
void cluster_release(struct cluster *cluster, const struct allocation *allocation);

void allocation_clear(struct allocation *allocation);
void allocation_copy(struct allocation *to, const struct allocation *from);

/* Nothing at all is booked on it. */
bool cluster_gpu_is_empty(const struct cluster_gpu *gpu);
/* One job may have all of it: it is empty, and nobody else is on it. */
bool cluster_gpu_is_whole(const struct cluster_gpu *gpu);
/* It is no job's own, has a slot left, and is not too full or too busy for one more. */
bool cluster_gpu_takes_share(const struct cluster_gpu *gpu);
/* Neither booked nor taken by others. */
uint64_t cluster_gpu_memory_left(const struct cluster_gpu *gpu);
/* It can be given to new jobs: present, neither paused nor closed, and its node up and not drained. A crowded
 * one is open: what is on it can end. */
bool cluster_gpu_is_open(const struct cluster_node *node, const struct cluster_gpu *gpu);
/* What uses it from outside mgpu is the very process that this adoption is for: it stands not in its own way.
 */
bool cluster_gpu_is_adoptee(const struct cluster_gpu *gpu, const struct sched_request *request);
/* The request's model and allowed set admit it. */
bool cluster_gpu_suits(
    const struct cluster *cluster, const struct cluster_gpu *gpu, const struct sched_request *request);

/* Bit m % 64 of the models that its model admits; 0 when there is none. All bits when it names no model. */
uint64_t cluster_models(const struct cluster *cluster, const struct sched_request *request);
/* How many GPUs of the node suit it, free or not, at most `enough`. */
uint32_t cluster_count_suitable(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, uint32_t enough);

/* The node has by its build the CPUs and the memory that are asked on each. */
bool cluster_host_suffices(const struct cluster_node *node, const struct sched_request *request);

/* Could it run on the idle cluster, everything paused or drained counted as there? -ERANGE with a sentence
 * that says what would fit when never. A cluster without nodes, or with one that has not described itself,
 * cannot tell: 0. */
int cluster_check(const struct cluster *cluster, const struct sched_request *request, struct error *err);

/* The ledger's own rules, for tests: no GPU both exclusive and shared, nothing booked beyond what there is.
 */
int cluster_invariant(const struct cluster *cluster, struct error *err);
