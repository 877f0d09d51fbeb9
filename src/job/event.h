/* SPDX-License-Identifier: MIT */
/* One change of one job, or (with job 0) of the cluster. Events are facts: once committed they are never
 * altered, and their fold is the job table. */
#pragma once

#include <stdint.h>

#include "base/record.h"
#include "job/spec.h"
#include "job/state.h"
#include "job/usage.h"

#define EVENT_TEXT_MAX 1024U
#define EVENT_GPUS_MAX SPEC_GPUS_MAX

#define STOP_TERMS_GRACE   1U // the stop has a grace of its own
#define STOP_TERMS_PROCESS 2U // of an adoption: its process is ended, too

/* One GPU (or a part of one) held by an attempt. */
struct gpu_grant {
    uint32_t index;  // PCI-order index on its node
    char *uuid;      // what stays the same when indices move
    uint32_t slot;   // 0 for an exclusive GPU, else 1..: which share of it
    uint64_t memory; // bytes booked; 0 for an exclusive GPU
    uint32_t share;  // thousandths booked; 0 unless a fraction was asked
    char *node;      // where it is; NULL: the node of the event
};

extern const struct record_type gpu_grant_record;

struct job_event {
    uint64_t seq; // position in the log of all events; 0 until it is in a batch
    uint64_t job;
    uint32_t attempt;          // the attempt it speaks of; 0 before the first one
    uint32_t type;             // enum job_event_type
    int64_t wall_ms;           // when, for people
    int64_t boot_ms;           // when, on the controller's boot clock
    uint32_t uid;              // submitted: the owner; stop and other requests: who asked
    uint32_t gid;              // submitted: the owner's group
    uint64_t token;            // allocated: names the attempt in every message about it
    char *node;                // allocated: where
    char *boot_id;             // allocated: the boot of that node
    struct record_list gpus;   // allocated: struct gpu_grant, in the order the job asked for
    char *log_path;            // started, ended: file with the output
    uint32_t end;              // ended: enum job_end
    int32_t exit_code;         // ended: exit status, or 128 + signal
    uint32_t signal;           // ended: the signal that ended it, or 0
    int64_t started_wall_ms;   // ended: when the command was executed, 0 when it never was
    int64_t run_ms;            // ended: how long it ran
    uint64_t cpu_ms;           // ended: user + system time of the command and its children
    uint64_t max_rss;          // ended: bytes
    uint64_t log_bytes;        // ended: size of the output
    char *text;                // returned, ended, preempted: why, in words; started: what is worth knowing
    uint32_t reason;           // stop: enum job_end that it gets by this; END_NONE: END_CANCELLED
    uint32_t hold;             // held, released: HOLD_ bits that are set or cleared
    uint64_t array_job;        // submitted: the array that this is an element of
    uint32_t array_index;      // submitted: its index; split: the index that was split off
    uint64_t element;          // split, member: the job of that element
    uint32_t cpu_milli;        // allocated: thousandths of a CPU booked on each of its nodes
    uint64_t memory;           // allocated: host memory booked on each of its nodes
    char *name;                // edited, submitted as an element: the new name; NULL: as it is
    struct record_list ask;    // edited, submitted as an element: exactly one struct job_ask
    struct record_list change; // cluster: exactly one struct cluster_change
    struct record_list usage;  // ended, requeued: at most one struct job_usage
    uint32_t idle_level;       // idle: enum idle_level
    int64_t idle_ms;           // idle: for how long it has used nothing
    uint32_t cause;            // preempted, requeued: enum requeue_cause
    int64_t retry_ms;          // requeued: not before this time, wall clock; 0: at once
    uint32_t sent;             // signalled: the signal
    struct record_list nodes;  // allocated, ended: struct job_node, all of several in order of rank
    int64_t node_lease_ms;     // allocated: it is over when its node has heard nothing for so long; 0: never
    uint32_t stop_terms;       // stop, preempted: STOP_TERMS_ bits
    int64_t stop_grace_ms;     // stop, preempted: with STOP_TERMS_GRACE, between SIGTERM and SIGKILL
    struct record_list
        steps; // step_started, step_ended: exactly one struct job_step; of an end its number and result
};

extern const struct record_type job_event_record;

void job_event_clear(struct job_event *event);

/* Adds a grant; `uuid` is copied. The caller may still set its share and node, until the next is added. */
struct gpu_grant *gpu_grants_add(
    struct record_list *grants, uint32_t index, const char *uuid, uint32_t slot, uint64_t memory);
void gpu_grants_copy(struct record_list *to, const struct record_list *from);
void gpu_grants_clear(struct record_list *grants);
