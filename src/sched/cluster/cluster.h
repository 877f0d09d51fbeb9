/* SPDX-License-Identifier: MIT */
/*
 * The cluster: nodes, their GPUs, CPUs and memory, and the ledger of bookings. Pure: no clock, no I/O. Nodes
 * and GPUs are identified by their position, which never changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers/name_table.h"
#include "base/error.h"
#include "base/strings.h"
#include "sched/cluster/request.h"

#define NODE_GPUS_LIMIT 256U
#define TIME_NEVER      INT64_MAX
#define PARTITIONS_MAX  64U // bits of a set

/* A named set of nodes; the jobs in it run only there. */
struct cluster_partition {
    char *name;
    struct strings nodes; // their names; empty: all nodes
    int32_t priority;     // added to that of its jobs
};

/* GPUs reserved for some users for a time (`mgpu reserve`). */
struct cluster_booking {
    uint64_t reservation; // its reservation id
    int64_t from_ms, until_ms;
};

struct cluster_gpu {
    uint32_t index;
    char *uuid;
    uint16_t model; // position in cluster->models
    uint64_t memory_bytes;
    bool is_known;        // the node has it, reachable or not
    bool is_present;      // known, and its node reports it as working
    bool is_paused;       // paused by an administrator
    uint32_t closed;      // bits of enum device_closed: why no new job may start on it
    bool has_external;    // external processes are on it: others are preferred
    bool is_exclusive;    // allocated to one job as a whole
    uint64_t share_slots; // bit n: slot n is taken, n in 1..63; slot 0 means the whole GPU
    uint32_t share_booked;
    uint32_t adoptee; // pid of the only process that closes the GPU, if an adoption waits for it
    uint64_t memory_booked;
    uint64_t memory_external; // used by external processes: shared jobs may use the rest, and no job gets the
                              // whole GPU
    /* Reserved for blocked jobs of the plan: this much must be free from hold_from_ms on. */
    int64_t hold_from_ms; // TIME_NEVER: no hold
    uint32_t hold_share;  // SHARE_WHOLE: all of it
    uint64_t hold_memory;
    uint64_t hold_class;              // number of the class it is held for; several: 0
    struct cluster_booking *bookings; // reservations, ordered by time
    size_t n_bookings;
    /* Of jobs that the scheduler has parked from it: the latest time of their return (sched_parked.c). */
    int64_t return_ms;       // TIME_NEVER: none
    uint32_t parked;         // how many
    int64_t parked_until_ms; // when they have probably ended
    /* Topology; equal numbers are close. -1: unknown. */
    int16_t numa, pcie_switch;
    uint64_t links; // bit k: NVLink to the GPU at position k of the same node
};

/* A bar: no job of a user starts on a node for a while, because their starts fail there. */
struct cluster_bar {
    uint32_t uid;     // CLUSTER_ALL_USERS: no job of any user
    int64_t until_ms; // removed then by the scheduler
    char *why;
};

#define CLUSTER_ALL_USERS UINT32_MAX

struct cluster_node {
    char *name;
    uint32_t position;
    bool is_up;
    bool is_described; // it has reported its hardware; before that, any job might run there
    bool is_drained;   // drained by an administrator
    struct cluster_bar *bars;
    size_t n_bars;
    bool is_gone;        // removed from the cluster; it keeps its position, and bookings until they end
    bool is_counted;     // in cluster->widths
    bool is_exclusive;   // one job has it exclusively
    bool parks;          // jobs are parked there by the scheduler's own rule
    bool returns_home;   // and they return only to the GPUs that they left
    uint64_t partitions; // bits of cluster->partitions
    uint32_t shares;     // bit k: shares of GPUs can be enforced by enum share_kind k; 0: not known
    uint32_t cpu_milli, cpu_booked; // thousandths of a CPU
    uint64_t memory, memory_booked; // bytes; memory 0: unknown, not limited
    uint32_t cpu_kept; // of these, the part of running jobs that wait for their GPUs (cluster_keep())
    uint64_t memory_kept;
    uint32_t jobs, jobs_max; // attempts on it, and their maximum; 0: no limit
    /* Attempts without GPUs, on this node only, that have not started; their maximum; 0: no limit.
     */
    uint32_t starts, starts_max;
    uint32_t dirty_at; // its position in cluster->dirty, if listed
    /* Reserved for blocked jobs of the plan from hold_from_ms on. */
    int64_t hold_from_ms;
    uint32_t hold_cpu_milli, hold_jobs;
    uint64_t hold_memory;
    bool hold_is_exclusive;
    uint64_t hold_class;
    struct cluster_gpu *gpus; // in order of discovery: by index, unless cards have moved
    size_t n_gpus;
};

struct node_index;
struct node_offer;

/* The hardware of all nodes, including unreachable ones. */
struct cluster_totals {
    double gpus, cpu_milli, memory;
};

struct cluster {
    struct cluster_node *nodes;
    size_t n_nodes;
    char **models; // distinct GPU models; [0] is "" (unknown)
    size_t n_models;
    bool has_instances;  // one of the models is that of a MIG instance
    uint64_t *gpu_sizes; // distinct sizes of GPU memory that were ever seen, ascending
    size_t n_gpu_sizes;
    struct cluster_partition *partitions;
    size_t n_partitions;
    struct node_index *index; // updated by cluster_touch()
    struct name_table names;  // nodes by name
    uint32_t *widths;         // number of nodes by their number of usable GPUs, allocated or not
    uint64_t version;         // incremented by every cluster_touch()
    struct cluster_totals totals;
    uint32_t node_jobs_max, node_starts_max; // jobs_max and starts_max of new nodes
    /* Nodes touched since the scheduler last ran, each once. */
    uint32_t *dirty;
    size_t n_dirty;
    bool is_postponed; // see cluster_postpone()
};

/* The allocation of an attempt. */
struct alloc_gpu {
    uint32_t node, gpu; // positions
    uint32_t slot;      // 0: the whole GPU
    uint32_t share;     // 0 unless a fraction was requested
    uint64_t memory;    // booked; 0 for a whole GPU
};

struct alloc_node {
    uint32_t node;
    uint32_t cpu_milli;
    uint64_t memory;
    bool is_exclusive;
};

struct allocation {
    struct alloc_gpu *gpus; // in the order requested, else by node and index
    size_t n_gpus;
    struct alloc_node *nodes; // each node once, in order of first use
    size_t n_nodes;
};

void cluster_init(struct cluster *cluster);
void cluster_clear(struct cluster *cluster);

/* NULL if unknown. Pointers to nodes are valid until the next node is added. */
struct cluster_node *cluster_find(const struct cluster *cluster, const char *name);
struct cluster_gpu *cluster_find_gpu(const struct cluster_node *node, const char *uuid);
struct cluster_gpu *cluster_find_index(const struct cluster_node *node, uint32_t index); // known ones only

/* The node with that name; added, without resources and down, if it is new. */
struct cluster_node *cluster_node(struct cluster *cluster, const char *name);
/* The GPU with that UUID; added, as absent, if it is new. After a restart, bookings are added before the node
 * reports. */
struct cluster_gpu *cluster_gpu(struct cluster_node *node, uint32_t index, const char *uuid);

/* Sets the node up with these resources; cluster_set_gpu adds its GPUs. Bookings are kept. */
struct cluster_node *cluster_set_node(
    struct cluster *cluster, const char *name, uint32_t cpu_milli, uint64_t memory);
/* Sets the resources of running jobs on the node that wait for their GPUs: booked, but by no allocation. */
void cluster_keep(struct cluster *cluster, struct cluster_node *node, uint32_t cpu_milli, uint64_t memory);
struct cluster_gpu *cluster_set_gpu(struct cluster *cluster, struct cluster_node *node, uint32_t index,
    const char *uuid, const char *model, uint64_t memory_bytes, bool is_present);

/* --- partitions --- */

/* Replaces the partitions, which are copied; at most PARTITIONS_MAX. */
void cluster_set_partitions(
    struct cluster *cluster, const struct cluster_partition *partitions, size_t count);
/* Those named in "a,b" as bits, and the highest of their priorities; unknown names have none. NULL: 0. */
uint64_t cluster_partition_bits(const struct cluster *cluster, const char *names, int32_t *ret_priority);
/* True if the request's partitions and lists of nodes allow the node, it has not been removed, and no bar
 * that the request heeds is in the way. */
bool cluster_node_admits(const struct cluster_node *node, const struct sched_request *request);

/* --- bars: bars.c --- */

/* The bar that keeps this user's jobs from the node; NULL: none. */
const struct cluster_bar *cluster_find_bar(const struct cluster_node *node, uint32_t uid);
/* Sets the bar for this user, or for CLUSTER_ALL_USERS; replaces an earlier one. `why` is copied. */
void cluster_bar(
    struct cluster *cluster, struct cluster_node *node, uint32_t uid, int64_t until_ms, const char *why);
/* Removes it; false if there is none. */
bool cluster_unbar(struct cluster *cluster, struct cluster_node *node, uint32_t uid);

/* Maximum number of attempts on each node; 0: no limit. */
void cluster_limit_jobs(struct cluster *cluster, uint32_t jobs_max);
/* True if the node has its maximum number of attempts. */
bool cluster_node_is_full(const struct cluster_node *node);

/* Maximum number of jobs without GPUs that each node starts at a time; 0: no limit. */
void cluster_limit_starts(struct cluster *cluster, uint32_t starts_max);
/* True if the node is starting its maximum number of them. */
bool cluster_node_is_starting(const struct cluster_node *node);
/* Counts one more of them as starting on the node. */
void cluster_start_begins(struct cluster_node *node);
/* One of them has started or ended. Touches the node if it was starting its maximum. */
void cluster_start_ends(struct cluster *cluster, struct cluster_node *node);

/* The node was removed: no request can use it until cluster_set_node adds it again. Unknown names are
 * allowed.
 */
void cluster_remove_node(struct cluster *cluster, const char *name);

/* Marks all its GPUs as absent until cluster_set_gpu names them again. Bookings are kept. */
void cluster_forget_gpus(struct cluster_node *node);

/* To be called after any change of a node that affects fits: updates its row of the index and marks it
 * dirty. */
void cluster_touch(struct cluster *cluster, struct cluster_node *node);

/* For many changes at once: cluster_touch() has no effect until cluster_catch_up(), which does it for all
 * nodes. */
void cluster_postpone(struct cluster *cluster);
void cluster_catch_up(struct cluster *cluster);

/* The node's offer now, with holds for blocked jobs counted as free or as taken. */
enum cluster_held { HELD_IS_FREE, HELD_IS_TAKEN };
void cluster_offer(const struct cluster_node *node, enum cluster_held held, struct node_offer *ret);

/* The number of usable GPUs per node if it is the same for all nodes with GPUs; else 0. */
uint32_t cluster_width(const struct cluster *cluster);

/* Books or releases an allocation and touches its nodes. */
void cluster_book(struct cluster *cluster, const struct allocation *allocation);
void cluster_release(struct cluster *cluster, const struct allocation *allocation);

void allocation_clear(struct allocation *allocation);
void allocation_copy(struct allocation *to, const struct allocation *from);

/* True if nothing is booked on it. */
bool cluster_gpu_is_empty(const struct cluster_gpu *gpu);
/* True if one job may have the whole GPU: it is empty and has no external process. */
bool cluster_gpu_is_whole(const struct cluster_gpu *gpu);
/* True if it is not exclusively allocated, has a free slot, and is neither full nor too busy. */
bool cluster_gpu_takes_share(const struct cluster_gpu *gpu);
/* Memory neither booked nor used by external processes. */
uint64_t cluster_gpu_memory_left(const struct cluster_gpu *gpu);
/* True if new jobs may use it: it is present, neither paused nor closed, and its node is up and not drained.
 * A crowded GPU counts as open, because its jobs can end. */
bool cluster_gpu_is_open(const struct cluster_node *node, const struct cluster_gpu *gpu);
/* True if the GPU is closed only because of the process this adoption is for. */
bool cluster_gpu_is_adoptee(const struct cluster_gpu *gpu, const struct sched_request *request);
/* True if the request's model and index set admit the GPU. */
bool cluster_gpu_suits(
    const struct cluster *cluster, const struct cluster_gpu *gpu, const struct sched_request *request);

/* True if every GPU suits the request. */
bool cluster_all_suit(const struct cluster *cluster, const struct sched_request *request);

/* Bits m % 64 of the models that the request admits; 0 if none. All bits if it names no model. */
uint64_t cluster_models(const struct cluster *cluster, const struct sched_request *request);
/* The number of suitable GPUs of the node, free or not, up to `enough`. */
uint32_t cluster_count_suitable(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, uint32_t enough);

/* True if the request's partitions and lists allow the node, and its total CPUs and memory suffice. */
bool cluster_host_suffices(const struct cluster_node *node, const struct sched_request *request);

/* Checks whether the request could run on the idle cluster, including paused and drained resources. If never:
 * -EBADSLT with a sentence that says what would fit. If a cluster has no nodes, or one that has not reported
 * yet, this is unknown: 0. */
int cluster_check(const struct cluster *cluster, const struct sched_request *request, struct error *err);

/* Checks the ledger, for tests: no GPU both exclusive and shared, no overbooking. */
int cluster_invariant(const struct cluster *cluster, struct error *err);
