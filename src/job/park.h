/* SPDX-License-Identifier: MIT */
/*
 * A parked job: the contents of its GPU memory are in host memory, its processes are stopped, and other jobs
 * may have its GPUs. It stays an attempt in JOB_RUNNING; this is the state within it.
 *
 *              park               parked (the node has saved everything)
 *      NONE ─────────> SAVING ──────────────────────> PARKED <───────────────┐
 *        ^ ^             │                             │  ^                   │
 *        │ └──unparked───┘ (refused: it still runs)    │  │ park              │ parked (nothing was
 *        │                                      unpark v  │                   │ restored: try later)
 *        └───────────unparked────── RESTORING <───── WAITING (for its GPUs) ──┘
 *                                       └──────────────────────────────────────> as above
 *
 * If the store is an older copy, the node may have had later orders, and a phase may be wrong
 * (EVENT_RECONCILED). The node is then ordered to save the job in any case, and the job returns by itself:
 * from NONE and RESTORING by way of SAVING; from PARKED and WAITING, where other jobs may have its GPUs, it
 * is saved in PARKED. These start when it is: a node starts nothing on a GPU on which another attempt runs.
 *
 * A job that starts early (EVENT_ALLOCATED with is_early) is born in WAITING: it runs on the CPU, and its
 * first attempt to open a GPU waits until it has its GPUs (base/node/open_gate.h). RESTORING then gives them
 * to it: nothing is restored. Its GPUs are fixed from its start on. Its host resources stay booked outside
 * the scheduler's ledger until it ends or is parked.
 *
 * It holds its GPUs and CPUs in NONE, SAVING and RESTORING. Its host memory, which now contains what was in
 * the GPUs, stays booked throughout. With several nodes, it is parked when all of its ranks are saved, and
 * runs again when all of them do (controller/core/concerns/park.c).
 *
 * A job that the scheduler parked by its own rule is owed the GPUs that it left, and its CPUs and host memory
 * stay booked. Its running and waiting times are kept here, so a restart does not change the time by which it
 * must be back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"

struct job;
struct job_ask;
struct job_event;

enum park_phase { PARK_NONE, PARK_SAVING, PARK_PARKED, PARK_WAITING, PARK_RESTORING, PARK_PHASES };

/* Why it was parked. */
enum park_cause {
    PARK_ASKED,      // by a user: it stays parked until a user or its own time unparks it
    PARK_PREEMPTED,  // its GPUs were needed: it returns by itself
    PARK_TIME_LIMIT, // its time limit was reached: it returns after the waiting jobs
    PARK_FOUND,      // the store, an older copy, did not have the state of its node: it returns by itself
    /* By the scheduler's own rule (sched/sched_guest.c): it returns by itself, in time. */
    PARK_SHORTER, // for a job that will probably end much sooner
    PARK_DUE,     // its GPUs were due to a job that had been parked to free them
    PARK_EARLY,   // it was never parked: it has started before its GPUs were free
    PARK_CAUSES,
};

/* An order to a node about an attempt, or about its rank there. The numbers are in messages. */
enum park_action {
    PARK_SAVE,
    PARK_RETURN, // restore it and let it run
    PARK_CHECK,  // with several ranks, before the first returns: could it return now? Changes nothing
};

/* The result of an order to park an attempt, or to restore it. The numbers are in messages and in the spool.
 */
enum park_outcome {
    PARK_DONE = 1, // it is parked: its GPUs are empty and its processes stopped. Or: it runs again
    PARK_REFUSED,  // nothing changed: it runs. Or: it is still parked, and a later try may succeed
    PARK_LOST,     // the driver cannot continue it
};

/* A node's report in HELLO about an attempt with GPUs. The numbers are in messages. */
enum park_seen {
    PARK_SEEN_RUNNING,
    PARK_SEEN_CHANGING, // an order to park it, or to restore it, is being carried out, or was left half done
    PARK_SEEN_PARKED,
};

struct job_park {
    uint32_t phase;      // enum park_phase
    uint32_t cause;      // enum park_cause
    uint32_t number;     // of the latest order to the node; increases within the job
    int64_t since_ms;    // wall clock: in PARKED and WAITING, since when its processes are stopped
    int64_t total_ms;    // of earlier periods of this attempt
    int64_t return_ms;   // wall clock: it returns by itself at this time; 0: it does not
    uint64_t bytes;      // contents of GPU memory that are in host memory, on all of its nodes
    uint64_t rank_bytes; // on the node that has the most; 0: an older version wrote this
    uint64_t memory;     // host memory booked for it on each of its nodes, outside the scheduler's ledger
    char *text;          // why the latest order was refused; NULL: it was not
    /* Of the scheduler's own rule. */
    bool is_owed;      // the latest save was by that rule: the job is owed the GPUs that it left
    uint64_t guest;    // the job for which it was parked the last time; 0: for none
    int64_t back_ms;   // wall clock: when it last resumed; 0: it was never parked
    int64_t ran_ms;    // how long it ran between its latest other park and the latest by the rule
    int64_t waited_ms; // how long the rule had it parked in that time, in completed periods
    /* Of an early start; kept after the end, except for what is booked. */
    uint32_t is_early;       // 1: it has not had its GPUs yet
    uint32_t kept_cpu_milli; // thousandths of a CPU and
    uint64_t kept_memory;    // host memory booked for it outside the scheduler's ledger
    int64_t granted_ms;      // wall clock: when it was given its GPUs; 0: not yet, or it did not start early
    int64_t early_ms;        // of total_ms: how long it ran before that
    int64_t saved_ms;        // of early_ms: how long it ran before a process of it waited for a GPU
    uint64_t behind;         // of an element: the one that still has its GPUs (job/behind.h); 0: none has
    /* Over all attempts. */
    uint32_t reclaimed; // the latest attempt that was preempted because its GPUs were due; 0: none was
    uint64_t lender;    // to which parked job
};

extern const struct record_type job_park_record;

const char *park_phase_name(uint32_t phase);
const char *park_cause_name(uint32_t cause);

/* For reading: the job's, or all zero. */
const struct job_park *job_park(const struct job *job);
void job_park_free(struct job_park *park);

/* True if it has started again, or is about to, because its GPUs were due to a parked job: it never has such
 * GPUs again on which that might happen. */
bool job_was_reclaimed(const struct job *job);

/* True while it has no GPUs and no CPUs: they are booked for it again before it is restored. */
bool job_is_parked(const struct job *job);

/* True while it is parked and its processes are stopped: those of a job that has started early are not. */
bool job_is_stopped(const struct job *job);

/* True while it runs without having had its GPUs. */
bool job_is_early(const struct job *job);

/* True if `event`, the last that was applied to the job, has given it the GPUs without which it had started.
 */
bool job_early_is_over(const struct job *job, const struct job_event *event);

/* For how long its attempt ran before it had its GPUs, up to this time. */
int64_t job_early_ms(const struct job *job, int64_t wall_ms);

/* True while it may run at its node although it is parked in this store: its node must save it. */
bool job_park_is_unconfirmed(const struct job *job);

/* True if `event`, the last one applied to the job, has parked it; false if it stays parked because its
 * return was refused. */
bool job_park_has_begun(const struct job *job, const struct job_event *event);

/* True if `event`, the last one applied to the job, has unparked it; false if the job continues because it
 * was not parked. */
bool job_park_is_over(const struct job *job, const struct job_event *event);

/* True if `event`, the last one applied to the job, reports that it was not parked and continues. */
bool job_park_was_refused(const struct job *job, const struct job_event *event);

/* True if `event`, the last that was applied to the job, stops it because it was parked and could not return.
 */
bool job_park_was_lost(const struct job *job, const struct job_event *event);

/* True if the job is active and its GPUs are booked for it: it is not parked, and not behind another element.
 */
bool job_holds_gpus(const struct job *job);

/* True while it is parked or returns, and is owed the GPUs that it left. */
bool job_is_owed(const struct job *job);

/* True if the scheduler parks for this cause by its own rule. */
bool park_cause_is_rule(uint32_t cause);

/* Bytes of GPU memory that each of its nodes keeps for it, at most. */
uint64_t job_park_node_bytes(const struct job *job);

/* How long its attempt was without its GPUs, up to this time: parked, or early. */
int64_t job_parked_ms(const struct job *job, int64_t wall_ms);

/* Wall clock: the time by which a parked job must be back, if it may be parked for `bound` times as long as
 * it has run; 0: it is owed nothing. */
int64_t job_park_latest_ms(const struct job *job, uint32_t bound);

/* How long a parked job ran before its processes were stopped. */
int64_t job_park_ran_ms(const struct job *job);

/* True if it may return on other GPUs of its node. */
bool job_park_may_move(const struct job *job);

/* What a parked job requests to return: the same GPUs of the same nodes, or as many on its node of those in
 * `allow` ("0,2"; NULL: the same); no host memory, and the rest of its time limit. The texts are those of the
 * job's request or `allow`, except `gpu_ids`, which the caller frees. */
void job_park_ask(const struct job *job, char *allow, struct job_ask *ret);

/* The part of job_apply() for the events of parking: the reason why the event is invalid now, or NULL; its
 * fold; and a violated rule of job_invariant(), or NULL. */
const char *job_park_fault(const struct job *job, const struct job_event *event);
void job_park_apply(struct job *job, const struct job_event *event);
const char *job_park_rule(const struct job *job);

/* The parts of job_apply() for an attempt that is allocated with is_early, and for its start. */
void job_park_begin_early(struct job *job, const struct job_event *event);
void job_park_note_start(struct job *job, int64_t wall_ms);

/* The part of job_apply() for a preemption: notes that the job's GPUs are due to a parked one. */
void job_park_note_reclaim(struct job *job, const struct job_event *event);

/* The job is queued again: keeps only what holds over all attempts. */
void job_park_requeue(struct job *job);

/* The attempt has ended: keeps only the time for which it was parked, up to this time. NULL is allowed.
 */
void job_park_end(struct job_park *park, int64_t wall_ms);
