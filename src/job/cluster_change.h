/* SPDX-License-Identifier: MIT */
/* One change of the cluster: what a node has, and what administrators said of nodes, GPUs, times and
 * settings. It travels as an EVENT_CLUSTER, an event of job 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"

#define CHANGE_DEVICES_MAX 256U
#define CHANGE_TEXT_MAX    (64U << 10)

/* The numbers are on disk. */
enum change_kind {
    CHANGE_NODE_UP, // it has these devices, CPUs and this memory
    CHANGE_NODE_DOWN,
    CHANGE_GPU_PAUSE,
    CHANGE_GPU_RESUME,
    CHANGE_NODE_DRAIN,
    CHANGE_NODE_RESUME,
    CHANGE_RESERVE,
    CHANGE_UNRESERVE,
    CHANGE_SETTINGS,
    CHANGE_GPU_POLICY,       // `text` says what others on this GPU mean: a external_policy, or "default"
    CHANGE_GPU_DRAIN,        // mgpu takes it out of use: `text` says why, `fault` how bad it is
    CHANGE_GPU_RETURN,       // and puts it back
    CHANGE_NODE_UNREACHABLE, // nothing was heard of it since `from_ms`
    CHANGE_NODE_FENCE,  // somebody has made sure that it is off: what ran there has ended; drained as well
    CHANGE_NODE_JOIN,   // a machine has become a node
    CHANGE_NODE_BACK,   // it is connected; what no job wants there ends first, then it is up
    CHANGE_NODE_FORGET, // it is no node any more
    CHANGE_KINDS,
};

/* The first line of the text of CHANGE_SETTINGS when it was no start: they were changed while mgpud ran. */
#define SETTINGS_LIVE "live=1\n"

/* Why a GPU that answers is not offered. The bits are on disk. */
enum device_closed {
    DEVICE_EXTERNAL = 1,  // a process that mgpu did not start uses it
    DEVICE_UNHEALTHY = 2, // an error of the device, until somebody or its class says that it is over
    DEVICE_UNCLEAN = 4,   // what a job left there is not gone yet
    DEVICE_CROWDED = 8,   // shared, and too full or too busy for one more
    DEVICE_REFUSED = 16,  // its mode keeps every job away
    DEVICE_ALONE = 32,    // its mode lets one process in: no shares
};

/* A GPU as its node describes it. */
struct cluster_device {
    char *uuid;
    char *model;
    uint64_t memory_bytes;
    uint64_t links; // bit k: NVLink to the GPU at position k of this list
    uint32_t index;
    int32_t numa, pcie_switch; // -1: not known
    bool is_lost;
    uint32_t closed;          // bits of enum device_closed: why nothing new may start there
    uint64_t memory_external; // bytes taken by processes of others, rounded up so that it seldom changes
    uint32_t adoptee; // pid of the process of a waiting adoption, if no other external process is on the GPU;
                      // 0: none
};

struct cluster_change {
    uint32_t kind; // enum change_kind
    uint32_t uid;  // who
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
    uint32_t gpus; // to reserve, when it is not said which
    bool has_come; // of CHANGE_NODE_UP: it was not up before
    bool is_held;  // of CHANGE_NODE_DRAIN: the store is an older copy; nothing there is stopped either
    /* Of a GPU that was drained. */
    uint32_t fault;     // enum gpu_fault
    uint32_t xid;       // of the driver's error that it was drained for; 0: for none
    uint64_t energy_mj; // its counter then: less means that it was reset since
    bool is_released;   // of CHANGE_GPU_PAUSE: its node lets go of it, too, so that it can be reset
};

extern const struct record_type cluster_device_record;
extern const struct record_type cluster_change_record;

/* "gpu_pause" and the like; "invalid" for another number. */
const char *change_kind_name(enum change_kind kind);

/* It has what its kind needs. */
int cluster_change_validate(const struct cluster_change *change, struct error *err);

void cluster_change_clear(struct cluster_change *change);
