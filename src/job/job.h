/* SPDX-License-Identifier: MIT */
/* The job record and job_apply(), the only function that changes its state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask_shared.h"
#include "job/earlier.h"
#include "job/event.h"
#include "job/job_nodes.h"
#include "job/park.h"
#include "job/spec.h"
#include "job/state.h"

#define HOLD_USER  1U // by its owner
#define HOLD_ADMIN 2U // by an administrator

#define JOB_SUMMARY_MAX 160U // bytes of the command kept for listings

/* The part of a job kept in memory and in the jobs table; the spec is in the store. */
struct job {
    uint64_t id;
    uint32_t uid, gid;
    uint32_t account; // the group it is accounted to, plus 1; 0: `gid` (job_group())
    enum job_state state;
    uint32_t attempt;          // number of the latest attempt, 0 before the first
    const struct job_ask *ask; // of job/ask_shared.h
    uint32_t hold;             // HOLD_ bits; the job waits while any is set
    uint32_t preemptions;      // number of requeues
    uint32_t restarts;         // requeues other than preemptions
    uint32_t retries;          // requeues because it had failed
    int64_t queued_ms;         // wall clock: start of the current wait; 0: since its submit
    int64_t retry_ms;          // wall clock: earliest start of its next attempt; 0: at once
    /* An array itself never runs: its elements are split off, each as a separate job. */
    char *array_left;         // of an array: the indexes not yet split off; NULL: not an array
    uint32_t array_open;      // elements split off and not done
    uint32_t array_failed;    // elements that ended other than exit 0
    uint32_t array_cancelled; // of those: cancelled
    uint32_t array_done;      // elements that ended with exit 0
    int32_t array_exit_max;   // highest exit status of an ended element
    /* Of an element. */
    uint64_t array_job; // 0: not an element
    uint32_t array_index;
    bool is_requeued;         // stopping: the job is requeued when the attempt ends
    enum job_end stop_reason; // the end that the requested stop results in; END_NONE: no stop requested
    uint64_t api_token;       // number of the API token it was submitted with; 0: none
    char *name;               // as displayed
    char *summary;            // beginning of the command line
    int64_t submitted_ms, started_ms, ended_ms; // wall clock; 0 until it has happened
    /* While an attempt is active, and kept afterwards. */
    uint64_t token;
    char *node;
    struct record_list grants; // struct gpu_grant; kept after the end for display
    struct job_run *run;       // NULL: no attempt yet; see job_run()
    uint32_t idle_level;       // enum idle_level of its attempt
    /* When done. */
    enum job_end end;
    int32_t exit_code;
    uint32_t stopped_by; // uid, meaningful when stop_reason is END_CANCELLED
    char *text;
};

/* Data of the latest attempt; a job that waits for its first has none. */
struct job_run {
    char *boot_id;
    struct job_nodes *nodes; // of an attempt on several nodes, the first of which is `node`; NULL: one node
    uint64_t memory;         // host memory booked on each of its nodes
    uint32_t cpu_milli;      // thousandths of a CPU booked on each of its nodes
    uint32_t terms;          // number of suspends, continues and time limit changes while it ran
    int64_t node_lease_ms;   // the attempt ends after its node has had no contact for this time; 0: never
    char *log_path;
    int64_t suspended_ms;        // wall clock: suspended since; 0: not suspended
    int64_t idle_warned_ms;      // wall clock: when idle_level left IDLE_NONE; 0: it is IDLE_NONE
    uint32_t requeue_cause;      // enum requeue_cause of the current or last requeue
    uint32_t limit_requeues;     // over all attempts: requeues at the time limit
    uint32_t loss_requeues;      // over all attempts: requeues after a lost node; limited separately
    uint32_t stop_terms;         // STOP_TERMS_ bits of the latest stop, while stopping
    int64_t stop_grace_ms;       // with STOP_TERMS_GRACE
    struct job_park *park;       // NULL: it was never parked; see job_park()
    struct job_earlier *earlier; // the latest attempt that was requeued and had output; NULL: none
    /* After the end. */
    uint32_t signal;
    int64_t run_ms;
    uint64_t cpu_ms, max_rss, log_bytes;
    struct job_usage *usage; // NULL: not measured
};

/* A job in state JOB_NEW, its request copied from `spec`. job_apply(EVENT_SUBMITTED) submits it. */
struct job *job_new(uint64_t id, const struct job_spec *spec);
void job_free(struct job *job);
void job_freep(struct job **job);

/* For reading: the attempt's data, or all zero. */
const struct job_run *job_run(const struct job *job);

/* True if the job was requeued to the end of the queue: at its time limit or by request. */
bool job_had_turn(const struct job *job);
/* For writing: created if the job has none. */
struct job_run *job_make_run(struct job *job);
void job_run_free(struct job_run *run);

/* Replaces the job's request by a copy of `ask`. */
void job_set_ask(struct job *job, const struct job_ask *ask);

/* The id that the user submitted: of an element, its array. */
static inline uint64_t job_submitted_as(const struct job *job)
{
    return job->array_job != 0 ? job->array_job : job->id;
}

/* The group whose limits, shares and statistics it counts towards: not always the one it runs with, `gid`. */
static inline uint32_t job_group(const struct job *job)
{
    return job->account != 0 ? job->account - 1 : job->gid;
}

static inline bool job_is_array(const struct job *job)
{
    return job->array_left != NULL;
}

/* An array all of whose elements are separate jobs. */
static inline bool job_is_split_up(const struct job *job)
{
    return job_is_array(job) && job->array_left[0] == '\0';
}

/* True if its attempt has ranks on several nodes. */
static inline bool job_is_wide(const struct job *job)
{
    return job_run(job)->nodes != NULL;
}

/*
 * Folds one event into the job. Refuses the event and changes nothing if the transition table has no such row
 * or the event is about another attempt: -EPROTO with a sentence.
 */
int job_apply(struct job *job, const struct job_event *event, struct error *err);

/* Maximum of `jitter`: the delay is between half of the doubled time and all of it. */
#define RETRY_JITTER_MAX 1000U

/*
 * True if the job's request calls for another attempt after one that ends with `end`; then sets `cause` and
 * `retry_ms`, relative to end->wall_ms. `jitter`: a random number up to RETRY_JITTER_MAX.
 */
bool job_requeue_decide(const struct job *job, struct job_event *end, uint32_t jitter);

/* Checks what must hold in each state; for tests and --fsck. Returns 0, or -EBADMSG with the violated
 * rule. */
int job_invariant(const struct job *job, struct error *err);
