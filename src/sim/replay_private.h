/* SPDX-License-Identifier: MIT */
/* The replay's inside, shared by replay*.c and nobody else. */
#pragma once

#include "job/cluster_change.h"
#include "job/job.h"
#include "sched/sched.h"
#include "sim/replay.h"

/* A job by its events; `job` is NULL when it is over. */
struct replay_job {
    struct job *job;
    uint64_t stem;
    bool is_ok; // it is over, with exit status 0
};

/* What mgpud keeps of accounts and run times for its next start. */
struct replay_row {
    char *kind, *key;
    struct buffer value;
};

struct turn_event {
    struct job_event event;
    uint64_t stem;
};

/* Taken here, not yet seen in the journal. */
struct decision {
    enum { DECIDED_START, DECIDED_PREEMPT, DECIDED_UNRESERVE } kind;
    uint64_t id;    // of the job or the reservation
    uint64_t array; // of the job
    char *where;    // of a start
};

struct replay {
    struct replay_counts counts;
    struct sched *sched;           // NULL before the first start
    struct replay_job *jobs;       // by id
    size_t n_jobs;                 // room
    uint64_t last_job, last_given; // highest id in the journal; given out by the present pass
    bool may_skip_ids; // mgpud was started and has given out none since: those it had reserved are lost
    struct cluster_change *marks, *reservations;
    size_t n_marks, n_reservations;
    struct replay_row *rows; // in order of kind and key
    size_t n_rows;
    /* The present turn. */
    struct turn_event *turn;
    size_t n_turn, turn_room;
    int64_t at_ms, last_ms;
    uint64_t last_seq;
    uint64_t start_seq; // of the latest start of mgpud
    struct decision *decisions;
    size_t n_decisions, next;
};

/* --- replay_jobs.c: jobs, and what the scheduler is told of them --- */
struct job *replay_find(const struct replay *replay, uint64_t id); // NULL: it is over, or never was
int replay_apply(
    struct replay *replay, const struct turn_event *turn, enum job_state *ret_before, struct error *err);
int replay_tell(
    struct replay *replay, const struct turn_event *turn, struct error *err);  // applies it as well
int replay_take_up(struct replay *replay, struct job *job, struct error *err); // at a start

/* --- replay_cluster.c --- */
int replay_change(struct replay *replay, const struct cluster_change *change, struct error *err);
int replay_load_reservation(struct replay *replay, const struct cluster_change *change, struct error *err);
void replay_note_change(
    struct replay *replay, const struct cluster_change *change); // of marks and reservations

/* --- replay_start.c --- */
/* mgpud starts with these settings: another scheduler, made from what the store has. */
int replay_start(struct replay *replay, const char *settings, struct error *err);

/* mgpud took other settings up while it ran. */
int replay_configure(struct replay *replay, const char *settings, struct error *err);
void replay_keep_accounts(struct replay *replay, const struct job *job, uint64_t stem);

extern const struct sched_callbacks replay_callbacks;
struct class_key replay_key(const struct job *job, uint64_t stem);
