/* SPDX-License-Identifier: MIT */
/* The job record and the only function that writes its state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask_shared.h"
#include "job/event.h"
#include "job/job_nodes.h"
#include "job/spec.h"
#include "job/state.h"

#define HOLD_USER  1U // by its owner
#define HOLD_ADMIN 2U // by an administrator

#define JOB_SUMMARY_MAX 160U // bytes of the command kept for lists

/* What stays in memory and in the jobs table for every job; the spec itself lives in the store. */
struct job {
    uint64_t id;
    uint32_t uid, gid;
    enum job_state state;
    uint32_t attempt;          // number of the latest attempt, 0 before the first
    const struct job_ask *ask; // of job/ask_shared.h
    uint32_t hold;             // HOLD_ bits; it waits while one is set
    uint32_t preemptions;      // times it was put back into the queue
    uint32_t restarts;         // of those: not to give way to others
    uint32_t retries;          // of those: because it had failed
    int64_t queued_ms;         // wall clock: since when it waits in its present place; 0: since its submit
    int64_t retry_ms;          // wall clock: not before this time is its next attempt; 0: at once
    /* An array never runs itself: its elements are split off it, each a job of its own. */
    char *array_left;      // of an array: the indexes not split off yet; NULL: not an array
    uint32_t array_open;   // elements split off that are not done
    uint32_t array_failed; // elements that ended other than exit 0
    /* Of an element. */
    uint64_t array_job; // 0: not an element
    uint32_t array_index;
    bool is_requeued;         // stopping: it goes back to the queue at its end
    enum job_end stop_reason; // the end that it gets by the stop that was asked for; END_NONE: none was
    char *name;               // as shown
    char *summary;            // start of the command line
    int64_t submitted_ms, started_ms, ended_ms; // wall clock, 0 while it has not happened
    /* While an attempt is active, and afterwards for the record. */
    uint64_t token;
    char *node;
    struct record_list grants; // struct gpu_grant; kept after the end, to be shown
    struct job_run *run;       // NULL: it was given nothing yet; see job_run()
    uint32_t idle_level;       // enum idle_level: how far its attempt has got by not using its GPUs
    /* When done. */
    enum job_end end;
    int32_t exit_code;
    uint32_t stopped_by; // uid, meaningful when stop_reason is END_CANCELLED
    char *text;
};

/* Of its latest attempt; a job that waits for its first has none of it. */
struct job_run {
    char *boot_id;
    struct job_nodes *nodes; // of an attempt on several nodes, `node` the first; NULL: it has one
    uint64_t memory;         // host memory booked on each of its nodes
    uint32_t cpu_milli;      // and thousandths of a CPU
    uint32_t terms;          // times it was suspended, continued or given another time limit while it ran
    int64_t node_lease_ms;   // it is over when its node has heard nothing of us for so long; 0: never
    char *log_path;
    int64_t suspended_ms;    // wall clock: since when it stands still; 0: it does not
    int64_t idle_told_ms;    // wall clock: since when idle_level is not IDLE_NONE; 0: it is
    uint32_t requeue_cause;  // why it goes back to the queue, or last went: enum requeue_cause
    uint32_t limit_requeues; // of all its attempts: times it went back because its time was up
    uint32_t loss_requeues;  // and because its node was lost; each has a limit of its own
    uint32_t stop_terms;     // of the latest stop, while it is being stopped: STOP_TERMS_ bits
    int64_t stop_grace_ms;   // with STOP_TERMS_GRACE
    /* When it is over. */
    uint32_t signal;
    int64_t run_ms;
    uint64_t cpu_ms, max_rss, log_bytes;
    struct job_usage *usage; // NULL: nothing was measured
};

/* A job in state JOB_NEW, its request copied from `spec`. job_apply(EVENT_SUBMITTED) makes it real. */
struct job *job_new(uint64_t id, const struct job_spec *spec);
void job_free(struct job *job);
void job_freep(struct job **job);

/* To be read: what it has, or all zero. */
const struct job_run *job_run(const struct job *job);

/* It went back to the end of the queue: its time was up, or a user asked for it. */
bool job_had_turn(const struct job *job);
/* To be written: made when the job has none. */
struct job_run *job_make_run(struct job *job);
void job_run_free(struct job_run *run);

/* Gives it another request, which is copied. */
void job_set_ask(struct job *job, const struct job_ask *ask);

/* The job that was submitted: of an element its array. */
static inline uint64_t job_submitted_as(const struct job *job)
{
    return job->array_job != 0 ? job->array_job : job->id;
}

static inline bool job_is_array(const struct job *job)
{
    return job->array_left != NULL;
}

/* Its attempt has a part on each of several nodes. */
static inline bool job_is_wide(const struct job *job)
{
    return job_run(job)->nodes != NULL;
}

/*
 * Folds one event into the job. Refuses, and changes nothing, when the transition table has no such row or
 * the event speaks of another attempt: -EPROTO with a sentence.
 */
int job_apply(struct job *job, const struct job_event *event, struct error *err);

/* How much earlier or later it may wait for its next try than the doubled time says: 0 to this. */
#define RETRY_JITTER_MAX 1000U

/*
 * True when the attempt whose end `end` tells is to be followed by another one, as the job asked: fills in
 * `cause` and `retry_ms`, as of end->wall_ms. `jitter`: a random number up to RETRY_JITTER_MAX.
 */
bool job_requeue_decide(const struct job *job, struct job_event *end, uint32_t jitter);

/* What must hold in each state; for tests and --fsck. Returns 0 or -EBADMSG with the rule that is broken. */
int job_invariant(const struct job *job, struct error *err);
