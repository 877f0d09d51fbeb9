/* SPDX-License-Identifier: MIT */
/*
 * An attempt on several nodes: one rank on each node. What is known of them is in
 * memory only; the agents say it again after every HELLO, and keep what has ended until the whole attempt is
 * over. Nothing of this exists for attempts on one node.
 */
#pragma once

#include "controller/core/core.h"

enum rank_state {
    RANK_UNHEARD,  // its node has not spoken of it since the link is up
    RANK_ASKED,    // its node has it, or was told to
    RANK_READY,    // everything is prepared, and it waits
    RANK_RELEASED, // it was let go
    RANK_STARTED,  // its command was executed
    RANK_RETURNED, // over: it never ran and never will
    RANK_ENDED,    // over: its exit record is here
    RANK_LOST,     // over: its node has no record of it
    RANK_STATES,
};

struct core_rank {
    enum rank_state state;
    uint32_t order;   // among those that are over, from 1 on
    int64_t word_ms;  // over: boot clock, when that was heard; of a loss: its node's last word before
    int64_t left_ms;  // boot clock: its node's last word before the HELLO that said first that it is over
    bool is_in_stop;  // over: the job, or its other ranks, were being stopped by then
    uint32_t port;    // of rank 0, since it is ready: where the ranks meet
    char *log_path;   // NULL: not known (yet)
    char *text;       // returned, lost: why
    enum job_end end; // lost: how
    struct launch_exit exit; // ended
    struct job_usage *usage; // as its agent said last; NULL: not known
};

struct core_entry;

struct core_ranks {
    uint64_t token;     // of the attempt that these are
    bool may_have_gone; // one of them was let go, or perhaps was by an earlier controller
    uint32_t n_over;
    size_t count;
    struct core_rank items[];
};

/* --- core/concerns/ranks_end.c --- */
bool core_rank_has_ended_well(const struct core_rank *rank);
bool core_rank_has_run(const struct core_rank *rank); // its command was executed
bool core_rank_is_loss(const struct core_rank *rank); // it is over because its node went down under it
/* All ranks are over, and with them the attempt. */
void core_ranks_end(struct core *core, struct core_entry *entry);
