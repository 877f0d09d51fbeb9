/* SPDX-License-Identifier: MIT */
/* The core as a whole: what it consists of. */
#pragma once

#include "controller/core/clock.h"
#include "controller/core/core.h"
#include "controller/core/outlook.h"
#include "controller/core/tables.h"
#include "job/ask_shared.h"
#include "sched/sched.h"

struct core_concern;

/* What was said of single GPUs or nodes, one entry for each; see marks.c. */
struct change_list {
    struct cluster_change *items;
    size_t count;
};

#define CORE_CONCERNS_MAX 40U

/* The concerns that have one of the hooks of every turn, message or event, in their order; NULL is the last.
 */
struct core_often {
    const struct core_concern *event[CORE_CONCERNS_MAX], *messages[CORE_CONCERNS_MAX],
        *heard[CORE_CONCERNS_MAX], *turn[CORE_CONCERNS_MAX], *next_ms[CORE_CONCERNS_MAX];
};

struct core {
    struct core_options options;
    struct core_effects effects;
    struct sched *sched;

    /* Jobs. */
    struct job_table jobs;
    struct key_table keys;
    struct ask_shelf asks;
    struct core_entry *active_first; // jobs that hold resources
    struct core_entry *done_first, *done_last;
    size_t n_done; // done and still in memory
    size_t resident_spec_bytes;
    struct owner *owners; // which users numbers were, in order of number and job
    size_t n_owners;

    /* Nodes. */
    struct core_node *nodes;
    size_t n_nodes;
    struct change_list marks;    // paused GPUs and drained nodes
    struct change_list policies; // of GPUs that have one of their own
    struct change_list faults;   // of GPUs that mgpu has drained

    /* The concerns, see concern.h, and what each of them keeps and no other file knows. */
    const struct core_concern *const *concerns;
    struct core_often often;
    struct core_counts *counts;
    struct core_limits *limits;
    struct core_quotas *quotas;
    struct core_schedule *schedule;
    struct core_steps *steps;
    struct core_loss *loss;
    struct notifications *notifications; // NULL: there were none yet
    struct adopt_question *questions;    // adoptions whose node was asked who their process is
    struct waiter *waiters;

    /* What was given out last, and what is durable. */
    uint64_t epoch, last_job, last_event, last_reservation;
    uint64_t last_order;  // of a LAUNCH; the epoch is above its low half
    uint64_t first_event; // events up to here are of runs before this one
    int64_t began_ms;     // wall clock: this run
    bool is_store_old;    // an administrator is to look at the queue before anything starts
    uint64_t last_durable_event, last_batch, durable_batch;
    struct batch *open;   // gathers changes
    struct batch *flying; // handed to the store, NULL when none is

    /* The present turn; see turn.c and clock.c. */
    int64_t boot_ms; // the latest that was told
    int64_t now_ms;  // of everything in this turn; 0: nothing has happened in it yet
    struct core_clock clock;
    int64_t last_ms;      // of the turn before
    int64_t last_boot_ms; // when that one ended
    int64_t armed_ms;     // the timer, 0: none
    struct outlook outlook;
};
