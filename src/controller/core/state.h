/* SPDX-License-Identifier: MIT */
/* The core's state. */
#pragma once

#include "controller/core/clock.h"
#include "controller/core/core.h"
#include "controller/core/forecast_cache.h"
#include "controller/core/node_jobs.h"
#include "controller/core/tables.h"
#include "job/ask_shared.h"
#include "sched/sched.h"

struct core_concern;
struct core_trouble;

#define CORE_CONCERNS_MAX 40U

/* The concerns with hooks that are called often (turn, message, event), in order; terminated by NULL. */
struct core_often {
    const struct core_concern *event[CORE_CONCERNS_MAX], *messages[CORE_CONCERNS_MAX],
        *contact[CORE_CONCERNS_MAX], *turn[CORE_CONCERNS_MAX], *next_ms[CORE_CONCERNS_MAX];
};

struct core {
    struct core_options options;
    struct core_effects effects;
    struct sched *sched;

    /* Jobs. */
    struct job_table jobs;
    struct key_table keys;
    struct ask_cache asks;
    struct core_entry *active_first;  // jobs that hold resources
    struct node_jobs_table node_jobs; // the same by node
    struct core_entry *done_first, *done_last;
    size_t n_done; // done jobs still in memory
    size_t resident_spec_bytes;
    struct owner *owners; // user names of uids, ordered by uid and job
    size_t n_owners;

    /* Nodes. */
    struct core_node *nodes;
    size_t n_nodes;
    struct name_table node_names;
    size_t *link_hints; // which node probably has a link: see core_find_link()
    size_t n_link_hints;
    int64_t marks_due_ms;  // earliest end of a mark, see admin.c
    int64_t health_due_ms; // earliest health_due_ms of all nodes

    struct core_trouble *troubles; // nodes on which starts fail: see refusal.c
    size_t n_troubles;

    /* The concerns, see concern.h, and their private state. */
    const struct core_concern *const *concerns;
    struct core_often often;
    struct core_counts *counts;
    struct core_limits *limits;
    struct core_pairs *pairs;
    struct core_quotas *quotas;
    struct core_forecasts *forecasts;
    struct core_schedule *schedule;
    struct core_steps *steps;
    struct core_guesses *guesses;
    struct core_loss *loss;
    struct core_parks *parks;
    struct core_park_proofs *park_proofs;
    struct core_park_rule *park_rule;
    struct core_behind *behind;
    struct core_earlies *earlies;
    struct core_early_commands *early_commands;
    struct core_budgets *budgets;
    struct notifications *notifications; // NULL: none so far
    struct adopt_question *questions;    // adoptions whose node was asked about their process
    bool may_have_adoptions;             // waiting ones
    struct waiter *waiters;

    /* Last numbers assigned, and what is durable. */
    uint64_t epoch, last_job, last_event, last_reservation;
    uint64_t last_order;  // of a LAUNCH; the upper half is the epoch
    uint64_t first_event; // events up to this one are from earlier runs
    int64_t began_ms;     // wall clock: start of this run
    bool is_store_old;    // an administrator must check the queue before anything starts
    uint64_t last_durable_event, last_batch, durable_batch;
    struct batch *open;   // collects changes
    struct batch *flying; // being written by the store, NULL if none

    /* The current turn; see turn.c and clock.c. */
    int64_t boot_ms; // last value passed in
    int64_t now_ms;  // the time throughout this turn; 0: no input yet
    struct core_clock clock;
    int64_t last_ms;      // of the previous turn
    int64_t last_boot_ms; // when the previous turn ended
    int64_t armed_ms;     // of the timer, 0: not armed
    struct forecast_cache forecast_cache;
};
