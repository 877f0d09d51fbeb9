/* SPDX-License-Identifier: MIT */
/* Internals of the replay, for replay*.c only. */
#pragma once

#include "job/cluster_change.h"
#include "job/job.h"
#include "job/park_refusals.h"
#include "lab/sim/replay/replay.h"
#include "sched/sched.h"

/* A job as derived from its events; `job` is NULL when it has ended. */
struct replay_job {
    uint64_t id;
    struct job *job; // NULL: it has ended
    uint64_t command_hash;
    bool is_ok;          // ended with exit status 0
    char *refused_by;    // nodes that are left out for it; NULL: none
    bool is_park_barred; // its contents do not fit
    int64_t began_ms;    // of an ended one: its start, or its end without one
};

/* A row of mgpud's stored accounts and run times. */
struct replay_row {
    char *kind, *key;
    struct buffer value;
};

struct turn_event {
    struct job_event event;
    uint64_t command_hash;
};

/* Made here, not yet seen in the journal. */
struct decision {
    enum { DECIDED_START, DECIDED_PREEMPT, DECIDED_PARK, DECIDED_UNRESERVE } kind;
    uint64_t id;    // of the job or the reservation
    uint64_t array; // of the job
    uint64_t guest; // of a park: the job for which it is parked; 0: for none
    char *where;    // of a start
};

struct replay {
    struct replay_counts counts;
    struct sched *sched;     // NULL before the first start
    struct replay_job *jobs; // by_id.h
    size_t n_jobs, jobs_room;
    uint64_t last_job, last_given; // highest id in the journal; last one assigned in the current pass
    bool may_skip_ids;             // mgpud was started and has assigned none since: reserved ids were lost
    struct cluster_change *marks, *reservations;
    struct cluster_change *sizes; // of all nodes, as each was last: mgpud knows them when it is started
    size_t n_marks, n_reservations, n_sizes;
    struct park_refusals refusals; // commands that could not be parked
    struct replay_row *rows;       // in order of kind and key
    size_t n_rows;
    /* The current turn. */
    struct turn_event *turn;
    size_t n_turn, turn_room;
    int64_t at_ms, last_ms;
    uint64_t last_seq;
    uint64_t start_seq; // of the latest start of mgpud
    struct decision *decisions;
    size_t n_decisions, next;
};

/* --- jobs.c: jobs and their descriptions for the scheduler --- */
struct replay_job *replay_entry(const struct replay *replay, uint64_t id); // NULL: unknown
struct job *replay_find(const struct replay *replay, uint64_t id);         // NULL: ended, or unknown
int replay_apply(
    struct replay *replay, const struct turn_event *turn, enum job_state *ret_before, struct error *err);
int replay_forward(
    struct replay *replay, const struct turn_event *turn, struct error *err); // also applies it
int replay_refused(struct replay *replay, const struct cluster_change *change, struct error *err);
void replay_admit_again(struct replay_job *entry);                             // on every node
int replay_take_up(struct replay *replay, struct job *job, struct error *err); // at a start

/* --- park_rule.c --- */
int replay_park_bar(struct replay *replay, const struct cluster_change *change, struct error *err);
bool replay_may_park(const struct replay *replay, uint64_t id); // by the scheduler's own rule
bool replay_may_borrow(const struct replay *replay, uint64_t id);
/* To be called before the scheduler asks which jobs may be parked. */
void replay_note_park(struct replay *replay, const struct replay_job *entry, const struct job_event *event);

/* --- cluster.c --- */
int replay_change(struct replay *replay, const struct cluster_change *change, struct error *err);
int replay_load_reservation(struct replay *replay, const struct cluster_change *change, struct error *err);
void replay_note_change(
    struct replay *replay, const struct cluster_change *change); // of marks and reservations

/* --- start.c --- */
/* mgpud starts with these settings: creates another scheduler from the stored state. */
int replay_start(struct replay *replay, const char *settings, struct error *err);

/* mgpud changed settings while running. */
int replay_configure(struct replay *replay, const char *settings, struct error *err);
void replay_keep_accounts(struct replay *replay, const struct job *job, uint64_t command_hash);

extern const struct sched_callbacks replay_callbacks;
struct class_key replay_key(const struct job *job, uint64_t command_hash);
