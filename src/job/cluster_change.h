/* SPDX-License-Identifier: MIT */
/* A change of the cluster: the resources of a node, or an administrator's decision about nodes, GPUs,
 * reservations or settings. EVENT_CLUSTER, an event of job 0, carries it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"

#define CHANGE_DEVICES_MAX 256U
#define CHANGE_TEXT_MAX    (64U << 10)

/* The numbers are stored on disk. */
enum change_kind {
    CHANGE_NODE_UP, // the node's devices, CPUs and memory
    CHANGE_NODE_DOWN,
    CHANGE_GPU_PAUSE,
    CHANGE_GPU_RESUME,
    CHANGE_NODE_DRAIN,
    CHANGE_NODE_RESUME,
    CHANGE_RESERVE,
    CHANGE_UNRESERVE,
    CHANGE_SETTINGS,
    CHANGE_GPU_POLICY,       // `text` is the external_policy of this GPU, or "default"
    CHANGE_GPU_DRAIN,        // mgpu drains the GPU: `text` is the reason, `fault` its severity
    CHANGE_GPU_RETURN,       // mgpu resumes the GPU
    CHANGE_NODE_UNREACHABLE, // the node has been silent since `from_ms`
    CHANGE_NODE_FENCE,       // an administrator confirmed that the node is off: its attempts have ended; also
                             // drains it
    CHANGE_NODE_JOIN,        // a machine has joined as a node
    CHANGE_NODE_BACK,        // connected again; orphaned attempts end first, then the node is up
    CHANGE_NODE_FORGET,      // the node was removed
    CHANGE_NODE_BAR,         // starts fail on the node: until `until_ms` (0: no longer) no jobs of `uid`, or
                             // UINT32_MAX: of all, start there
    CHANGE_JOB_REFUSED,      // `job` does not start on the nodes in `text`; NULL: this no longer applies
    CHANGE_NODE_PARKING,     // an operator has tested whether jobs can be parked there: `text` is the result
    CHANGE_PARK_BAR, // the scheduler does not park `job` by its own rule, because of `text`; NULL: it may
    CHANGE_KINDS,
};

/* First line of the text of CHANGE_SETTINGS when settings were changed while mgpud was running. */
#define SETTINGS_LIVE "live=1\n"

/* Reasons why a GPU that responds is not offered. The bits are stored on disk. */
enum device_closed {
    DEVICE_EXTERNAL = 1,  // a process that mgpu did not start uses it
    DEVICE_UNHEALTHY = 2, // a device error, until an administrator resumes it or its class recovers
    DEVICE_UNCLEAN = 4,   // remains of a job (processes, memory) are still on it
    DEVICE_CROWDED = 8,   // shared, and too full or too busy for another job
    DEVICE_REFUSED = 16,  // its compute mode admits no job
    DEVICE_ALONE = 32,    // its compute mode admits one process: no shares
    DEVICE_DIVIDED = 64,  // its MIG instances are offered instead
};

/* A GPU as its node describes it. */
struct cluster_device {
    char *uuid;
    char *model;
    uint64_t memory_bytes;
    uint64_t links; // bit k: NVLink to the GPU at position k of this list
    uint32_t index;
    int32_t numa, pcie_switch; // -1: unknown
    bool is_lost;
    uint32_t closed;          // bits of enum device_closed: why no new job may start on it
    bool has_external;        // external processes are on it, however small: others are preferred
    uint64_t memory_external; // bytes used by external processes, rounded up so that it seldom changes
    uint32_t adoptee; // pid of the process of a waiting adoption, if it is the only external process on the
                      // GPU; 0: none
};

struct cluster_change {
    uint32_t kind; // enum change_kind
    uint32_t uid;  // the user who made the change
    char *node;
    char *uuid; // of one GPU
    uint64_t reservation;
    int64_t from_ms, until_ms; // wall clock
    char *gpu_ids;
    char *users; // "1000,1001"
    char *text;  // the reason, or the settings
    uint64_t memory;
    struct record_list devices; // struct cluster_device
    uint32_t cpu_milli;
    uint32_t gpus; // how many to reserve, if no specific GPUs are named
    bool has_come; // of CHANGE_NODE_UP: the node was not up before
    bool is_held;  // of CHANGE_NODE_DRAIN: the store is an older copy, so nothing on the node is stopped
    /* Of a drained GPU. */
    uint32_t fault;     // enum gpu_fault
    uint32_t xid;       // the Xid that caused the drain; 0: none
    uint64_t energy_mj; // energy counter at that time: a lower value means that the GPU was reset since
    bool is_released;   // of CHANGE_GPU_PAUSE: the node also closes the GPU, so that it can be reset
    uint64_t job;       // of CHANGE_JOB_REFUSED and CHANGE_PARK_BAR
    uint32_t shares;    // of CHANGE_NODE_UP: as in HELLO (wire/message.h); 0: not known
    bool parks;         // of CHANGE_NODE_UP: the scheduler may park jobs there by its own rule
    bool returns_home;  // of CHANGE_NODE_UP: and they return only to the GPUs that they left
    /* Of CHANGE_NODE_UP: resources of the node held by jobs that started early, outside the ledger. */
    uint32_t kept_cpu_milli;
    uint64_t kept_memory;
};

extern const struct record_type cluster_device_record;
extern const struct record_type cluster_change_record;

/* "gpu_pause" and the like; "invalid" for another number. */
const char *change_kind_name(enum change_kind kind);

/* Checks that the change has the fields its kind requires. */
int cluster_change_validate(const struct cluster_change *change, struct error *err);

void cluster_change_clear(struct cluster_change *change);
