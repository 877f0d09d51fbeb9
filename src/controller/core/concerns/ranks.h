/* SPDX-License-Identifier: MIT */
/*
 * An attempt on several nodes: one rank on each node. The state of ranks is only in memory; agents report it
 * again after every HELLO, and keep ended ranks until the whole attempt has ended. Attempts on one node use
 * none of this.
 */
#pragma once

#include "controller/core/core.h"
#include "controller/core/send.h"

enum rank_state {
    RANK_UNREPORTED, // its node has not reported it since it connected
    RANK_ASKED,      // its node has it, or it was sent there
    RANK_READY,      // prepared, waiting for GO
    RANK_RELEASED,   // GO was sent
    RANK_STARTED,    // its command was executed
    RANK_RETURNED,   // ended: it never ran and never will
    RANK_ENDED,      // ended: its exit record has arrived
    RANK_LOST,       // ended: its node has no record of it
    RANK_STATES,
};

struct core_rank {
    enum rank_state state;
    uint32_t order;    // order of the ended ones, from 1 on
    int64_t report_ms; // ended: boot clock at the report; of a loss: last message of its node before
    int64_t left_ms;   // boot clock: last message of its node before the HELLO that first reported the end
    int64_t ended_ms;  // ended: boot clock at its end, whatever the clock of its node is; 0: unknown
    bool is_in_stop;   // ended: the job, or its other ranks, were already being stopped
    bool was_alive;    // its node reported to this controller that it had not ended
    bool has_record;   // lost: its node has returned, and keeps the exit record until the attempt ends
    uint32_t port;     // of rank 0, once ready: rendezvous port
    char *log_path;    // NULL: unknown
    char *text;        // returned, lost: the reason
    uint32_t cause;    // returned: enum start_cause
    enum job_end end;  // lost: the resulting end
    struct launch_exit exit; // ended
    struct job_usage *usage; // last report of its agent; NULL: unknown
    struct core_sent sent;
};

struct core_entry;

struct core_ranks {
    uint64_t token;     // of their attempt
    bool may_have_gone; // one of them was sent GO, or may have been by an earlier controller
    uint32_t n_over;
    uint32_t n_fresh; // reports of usage that are not in the job's usage yet
    size_t count;
    struct core_rank items[];
};

/* --- core/concerns/ranks_usage.c --- */
/* A report of the agent of this rank; `usage` is copied. */
void core_ranks_take_usage(struct core_entry *entry, struct core_rank *rank, const struct job_usage *usage);
/* Of the exit records of all ranks; the caller frees it. NULL if none is known. */
struct job_usage *core_ranks_final_usage(const struct core_entry *entry);

/* --- core/concerns/ranks_end.c --- */
bool core_rank_has_ended_well(const struct core_rank *rank);
bool core_rank_has_run(const struct core_rank *rank); // its command was executed
bool core_rank_is_loss(const struct core_rank *rank); // it ended because its node failed
/* All ranks have ended, and with them the attempt. */
void core_ranks_end(struct core *core, struct core_entry *entry);
