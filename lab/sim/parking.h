/* SPDX-License-Identifier: MIT */
/*
 * A model of parking: what mgpu-sim assumes of preempted jobs whose memory stays on their node. It keeps the
 * books of parked GPUs: where a job returns to, what a node may hold, which jobs cannot be parked, and what a
 * park costs the parked job and the one that gets its GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sched/sched.h"

enum parking_where { PARKING_ANY, PARKING_NODE, PARKING_GPU }; // where a parked job may return to

struct parking_options {
    bool is_on;
    bool is_auto; // the scheduler parks by its own rule, which says where a job returns to
    enum parking_where where;
    double room;                  // parked GPUs that a node may hold, per GPU of its own
    int64_t save_ms, save_gpu_ms; // additional work of the parked job, and the same for each of its GPUs
    int64_t load_ms, load_gpu_ms; // until its GPUs are empty, and for each of them
    unsigned refuse_percent;      // part of the commands whose jobs cannot be parked
};

/* Reads "where=gpu|node|any,room=R,save=3s+8s/gpu,load=2s+4s/gpu,refuse=25%"; what is not named keeps its
 * default: any, 4, the costs above, 0. -EINVAL with a sentence. */
int parking_options_read(struct parking_options *ret, const char *text, struct error *err);

/* Tells the scheduler what parking and returning a job costs. Its quantum follows from that. */
void parking_set_cost(const struct parking_options *options, struct sched_settings *settings);

/* The contents of one job. */
struct parked {
    char *node_name; // NULL: not parked
    uint32_t node;
    uint64_t gpu_milli;
    uint32_t *gpus; // ascending
    size_t n_gpus;
};

struct parking {
    struct parking_options options;
    uint64_t *held_milli; // by each node
    size_t n_nodes;
    struct parked *jobs;
    size_t n_jobs;
    bool *refuses;       // of each job
    int64_t *leaving_ms; // of each node: when all contents that leave its GPUs now have left
    int64_t *empty_ms;   // by each GPU of each node: when the contents of jobs parked there have left
    uint64_t n_parks;
};

void parking_init(
    struct parking *parking, const struct parking_options *options, size_t n_nodes, size_t n_jobs);
void parking_clear(struct parking *parking);

/* A new job, and the hash of its command; HASH_START: it has none. */
void parking_know(struct parking *parking, uint32_t job, uint64_t command);
/* May this job with this allocation be parked now? */
bool parking_allows(const struct parking *parking, const struct cluster *cluster, uint32_t job,
    const struct allocation *allocation);
/* Parks it; parking_allows() said yes. Returns its cost in milliseconds of work. */
int64_t parking_add(struct parking *parking, const struct cluster *cluster, uint32_t job,
    const struct allocation *allocation, int64_t now_ms);
/* It runs again, or its contents are lost with the node. */
void parking_remove(struct parking *parking, uint32_t job);
/* How long a job that starts here now waits for the contents of others to leave, in milliseconds. What leaves
 * a node leaves it one job after the other. */
int64_t parking_delay(const struct parking *parking, const struct allocation *allocation, int64_t now_ms);
/* Restricts a request to the place of return. The request borrows what it needs. */
void parking_bind(const struct parking *parking, uint32_t job, struct sched_request *request);
