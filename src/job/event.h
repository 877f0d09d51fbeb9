/* SPDX-License-Identifier: MIT */
/* An event: one change of one job or, with job 0, of the cluster. Events are immutable once committed; the
 * job table is their fold. */
#pragma once

#include <stdint.h>

#include "base/record.h"
#include "job/spec.h"
#include "job/state.h"
#include "job/usage.h"

#define EVENT_TEXT_MAX 1024U
#define EVENT_GPUS_MAX SPEC_GPUS_MAX

/* Minimum by which ids, events and epochs are advanced after a restore: more than the original can have used
 * since. */
#define RESTORE_GAP 1000000

#define STOP_TERMS_GRACE   1U // the stop specifies its own grace
#define STOP_TERMS_PROCESS 2U // of an adoption: its process is killed too
#define STOP_TERMS_USER    4U // a user has cancelled it: it stops even if its attempt never ran

/* A GPU, or a share of one, allocated to an attempt. */
struct gpu_grant {
    uint32_t index;  // PCI-order index on its node
    char *uuid;      // stays the same when indexes change
    uint32_t slot;   // 0 for an exclusive GPU, else 1..: which share of it
    uint64_t memory; // bytes booked; 0 for an exclusive GPU
    uint32_t share;  // thousandths booked; 0 unless a fraction was requested
    char *node;      // its node; NULL: the node of the event
};

extern const struct record_type gpu_grant_record;

/* The API token with which a job was submitted. */
struct event_credential {
    uint64_t token;      // its number
    uint64_t max_gpu_ms; // GPU time that all its jobs may use together; 0: unlimited
    int64_t expires_ms;  // wall clock: no job can be submitted with it later
};

struct job_event {
    uint64_t seq; // position in the log of all events; 0 until it is added to a batch
    uint64_t job;
    uint32_t attempt;        // the attempt concerned; 0 before the first
    uint32_t type;           // enum job_event_type
    int64_t wall_ms;         // time, wall clock, for display
    int64_t boot_ms;         // time, on the controller's boot clock
    uint32_t uid;            // submitted: the owner; stop and other requests: the caller
    uint32_t gid;            // submitted: the owner's group
    uint32_t account;        // submitted: the group that it counts for, plus 1; 0: `gid`
    uint64_t token;          // allocated: identifies the attempt in every message about it
    char *node;              // allocated, restoring: the node
    char *boot_id;           // allocated: boot id of that node
    struct record_list gpus; // allocated, restoring, inherits: struct gpu_grant, in the order requested
    char *log_path;          // started, ended: output file
    uint32_t end;            // ended: enum job_end
    int32_t exit_code;       // ended: exit status, or 128 + signal
    uint32_t signal;         // ended: the signal that ended it, or 0
    int64_t started_wall_ms; // ended: time of the exec; 0 if it never happened
    int64_t run_ms;          // ended: run time
    int64_t parked_ms;       // ended, requeued: time that is no run time: parked, or early without its GPUs
    uint64_t cpu_ms;         // ended: user + system time of the command and its children
    uint64_t max_rss;        // ended: bytes
    uint64_t log_bytes;      // ended: size of the output
    char *text;              // returned, ended, preempted, parked, unparked: the reason; started: a remark
    uint32_t reason;         // stop: the resulting enum job_end; END_NONE: END_CANCELLED. returned: the job's
                             // stop_reason if that concerned an attempt that never ran, and is void
    uint32_t hold;           // held, released: HOLD_ bits set or cleared
    uint64_t array_job;      // submitted: the array this job is an element of
    uint32_t array_index;    // submitted: its index; split: the index that was split off
    uint64_t element;        // split, member: the job of that element
    uint32_t cpu_milli;      // allocated, restoring: thousandths of a CPU booked on each of its nodes
    uint64_t memory;         // allocated: host memory booked on each of its nodes
    char *name;              // edited, submitted as an element: the new name; NULL: unchanged
    struct record_list ask;  // edited, submitted as an element: exactly one struct job_ask
    struct record_list change; // cluster: exactly one struct cluster_change
    struct record_list usage;  // ended, requeued: at most one struct job_usage
    uint32_t idle_level;       // idle: enum idle_level
    int64_t idle_ms;           // idle: how long its GPUs have been unused
    uint32_t cause;            // preempted, requeued: enum requeue_cause
    int64_t retry_ms;          // requeued, returned: earliest next start, wall clock; 0: at once
    uint32_t sent;             // signalled: the signal
    uint32_t scope;            // signalled: recipients, enum signal_scope (job/launch.h)
    char *signals;             // ended, requeued: who was signalled, and who had to be killed
    struct record_list
        nodes; // allocated, ended: struct job_node of an attempt on several nodes, in order of rank
    int64_t node_lease_ms; // allocated: the attempt ends after its node has had no contact for this time; 0:
                           // never
    uint32_t stop_terms;   // stop, preempted: STOP_TERMS_ bits
    int64_t stop_grace_ms; // stop, preempted: with STOP_TERMS_GRACE, between SIGTERM and SIGKILL
    struct record_list
        steps; // step_started, step_ended: exactly one struct job_step; of an end its number and result
    uint64_t park_guest;      // park: for which job, by the scheduler's own rule; 0: for none. preempted: the
                              // parked job to which its GPUs are due
    uint32_t park_cause;      // park: enum park_cause; preempted: PARK_PREEMPTED if it could not be parked,
                              // PARK_DUE if its GPUs are due to a parked job
    int64_t park_return_ms;   // park: it returns by itself at this time, wall clock; 0: it does not
    uint64_t park_bytes;      // parked: contents of GPU memory that are in host memory
    uint64_t park_rank_bytes; // parked: on the node that has the most
    uint32_t terms;           // reconciled: from here on settings are counted
    uint32_t park_number;     // reconciled: from here on orders to park are counted; 0: there was none
    uint32_t park_seen;       // reconciled: its node's report about it (enum park_seen)
    uint32_t is_early; // allocated: it starts without its GPUs, and waits for them as a parked job does
    uint64_t behind;   // allocated: the element that still has these GPUs (job/behind.h); 0: none has
    int64_t waited_ms; // unparked, after an early start: how long it had waited for a GPU by then
    struct record_list credential; // submitted: at most one struct event_credential
};

extern const struct record_type job_event_record;

void job_event_clear(struct job_event *event);

/* Adds a grant; `uuid` is copied. The caller may set its share and node until the next call. */
struct gpu_grant *gpu_grants_add(
    struct record_list *grants, uint32_t index, const char *uuid, uint32_t slot, uint64_t memory);
void gpu_grants_copy(struct record_list *to, const struct record_list *from);
void gpu_grants_clear(struct record_list *grants);
/* Thousandths of GPUs. A GPU shared by memory counts as a whole one. */
uint64_t gpu_grants_milli(const struct record_list *grants);
