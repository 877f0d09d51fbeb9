/* SPDX-License-Identifier: MIT */
/*
 * A GPU of a node: its node's reports, the results of its samples, and the reasons that keep jobs away from
 * it. It exists from its first report, or from the first mark in the store, until mgpud ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/external.h"
#include "job/gpu_health.h"

struct alloc_gpu;
struct cluster_change;
struct cluster_gpu;
struct cluster_node;
struct core;
struct core_node;
struct gpu_state;
struct job;

/* Thresholds, in percent and bytes. */
struct external_settings {
    enum external_policy policy; // of GPUs without their own policy
    uint64_t external_memory;    // bytes of one process; used if external_part is 0
    uint32_t external_part;      // percent of the GPU's memory, of all external processes together
    uint32_t external_load;      // percent of the GPU, while no job is on it
    uint32_t share_memory;       // percent of its memory: a shared GPU accepts no further job
    uint32_t share_load;         // percent
};

/* Results of its samples. */
struct gpu_watch {
    bool has_external;       // any external process
    bool is_used_externally; // an external process above the thresholds
    bool is_crowded;         // shared, and too full or too busy for another job
    uint32_t adoptee;    // pid that a waiting adoption is for, if it is the only external process above the
                         // thresholds; 0: none
    bool is_unclean;     // remains of a job are still on it
    bool is_refused;     // its mode admits no job
    bool is_one_process; // its mode admits one process
    uint64_t external_memory; // of all external processes, rounded up; 0 if none is above the thresholds
    /* Consecutive samples. */
    uint32_t alone;    // without any external process
    uint32_t calm;     // without an external process above the thresholds
    uint32_t unknown;  // without a list of processes
    uint32_t loaded;   // with a load and no job
    uint32_t less;     // with less memory than external_memory
    uint32_t contrary; // that contradict is_crowded
    uint64_t most;     // maximum memory in the samples counted by `less`
    struct gpu_health health;
};

struct core_gpu {
    char *uuid;
    char *model;                   // as of its node's models; NULL: not reported
    const struct gpu_state *state; // in its node's last report; NULL: not in it
    uint32_t place;                // its position in the node of the cluster; UINT32_MAX: not looked up yet
    struct gpu_watch watch;
    struct cluster_change *mark;  // paused or released by an administrator; NULL: not
    struct cluster_change *fault; // drained by mgpu itself; NULL: not
    enum external_policy policy;  // its own; EXTERNAL_POLICIES: none
};

/* The GPU at this position of its node's last report; NULL: it has no UUID. */
struct core_gpu *core_gpu_at(const struct core_node *node, size_t position);
/* NULL: not known. */
struct core_gpu *core_find_gpu(const struct core_node *node, const char *uuid);
/* The GPU at this place of the cluster, whose node is *ret_node; NULL: not known. */
const struct core_gpu *core_gpu_of(
    const struct core *core, const struct alloc_gpu *place, const struct core_node **ret_node);

/* The administrator's mark on it, or on the GPU that it is part of; NULL: none. `gpu` may be NULL. */
const struct cluster_change *core_gpu_mark(const struct core_node *node, const struct core_gpu *gpu);
/* Why mgpu has drained it, or the GPU that it is part of, since `from_ms`; NULL: not drained by mgpu. */
const struct cluster_change *core_gpu_fault(const struct core_node *node, const struct core_gpu *gpu);
/* The policy for external processes on it. `gpu` may be NULL. */
enum external_policy core_gpu_policy(const struct core *core, const struct core_gpu *gpu);
/* True if external processes above the thresholds are on it. `gpu` may be NULL. */
bool core_gpu_is_used_externally(const struct core_gpu *gpu);

/* --- within the core --- */

struct core_gpu *core_take_gpu(struct core_node *node, const char *uuid); // created if new
/* Its node has reported, `is_new` after a HELLO: finds the GPU of each position, and what is said of it. */
void core_link_reports(struct core_node *node, bool is_new);
void core_clear_gpus(struct core_node *node);

/* The cluster's bookings on it; NULL: its node is unknown (`ledger` NULL), or does not have it. */
struct cluster_gpu *core_gpu_books(const struct cluster_node *ledger, struct core_gpu *gpu);

/* Calls for each instance of that GPU that exists. */
void core_each_instance(const struct core_node *node, const struct core_gpu *gpu,
    void (*visit)(void *arg, struct core_gpu *instance), void *arg);

/* The memory of the first GPU that the job has or had; 0: not known. */
uint64_t core_memory_of_gpu(const struct core *core, const struct job *job);
/* An instance of the job that no longer exists; NULL: all exist. */
const struct gpu_state *core_gone_instance(const struct core *core, const struct job *job);
