/* SPDX-License-Identifier: MIT */
/* How often each kind of thing happened in the histories that were run, so that a reader sees what was tried.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum tally_kind {
    TALLY_JOBS,
    TALLY_HAPPENINGS,
    TALLY_DECISIONS,
    TALLY_CONTROLLER_DEATHS,
    TALLY_COMMITS_KEPT,
    TALLY_COMMITS_LOST,
    TALLY_SUBMITS_AGAIN,
    TALLY_AGENT_DEATHS,
    TALLY_AGENT_STOPS,
    TALLY_SHEPHERD_DEATHS,
    TALLY_REBOOTS,
    TALLY_NODES_GONE,
    TALLY_CLOCK_STEPS,
    TALLY_CUTS,
    TALLY_SILENCES,
    TALLY_HALF_OPEN,
    TALLY_OVERLAPS,
    TALLY_FRAMES,
    TALLY_FRAMES_LOST,
    TALLY_ACKS_LOST,
    TALLY_FRAMES_LATE,
    TALLY_FRAMES_TWICE,
    TALLY_FRAMES_STRAY,
    TALLY_OLD_HELLOS,
    TALLY_REBOOTS_EARLY,
    TALLY_TWINS,
    TALLY_WIPES,
    TALLY_FENCES,
    TALLY_FENCES_REFUSED,
    TALLY_FENCES_ALIVE,
    TALLY_DISOWNED,
    TALLY_PEERS_FAULTS,
    TALLY_LEASE_ENDS,
    TALLY_TROUBLES,
    TALLY_BARS_OF_ALL,
    TALLY_REFUSALS,
    TALLY_READMISSIONS,
    TALLY_LOSSES,
    TALLY_WIDE_RUNS,
    TALLY_PREEMPTIONS,
    TALLY_REQUEUES,
    TALLY_RETURNS,
    TALLY_CANCELS,
    TALLY_SUSPENSIONS,
    TALLY_PARKS,
    TALLY_PARKS_PREEMPTED,
    TALLY_PARKS_TIME_LIMIT,
    TALLY_PARKS_RULE,
    TALLY_PARKS_DUE,
    TALLY_RULE_HISTORIES,
    TALLY_RULE_IN_TIME,
    TALLY_RULE_LOST,
    TALLY_RECLAIMS,
    TALLY_PARKS_WIDE,
    TALLY_PARKS_REFUSED,
    TALLY_PARK_RETURNS,
    TALLY_PARK_MOVES,
    TALLY_PARK_RETURNS_REFUSED,
    TALLY_HELPER_DEATHS,
    TALLY_EARLY,
    TALLY_EARLY_UNASKED,
    TALLY_EARLY_GRANTS,
    TALLY_EARLY_ENDS,
    TALLY_BEHIND,
    TALLY_BEHIND_INHERITS,
    TALLY_BEHIND_FIRST,
    TALLY_BEHIND_RECALLS,
    TALLY_BEHIND_RETURNS,
    TALLY_GPU_DRAINS,
    TALLY_GPU_RETURNS,
    TALLY_EDITS,
    TALLY_DEADLINES,
    TALLY_NEVERS,
    TALLY_PAIRS,
    TALLY_SETTINGS,
    TALLY_NODE_DRAINS,
    TALLY_RESERVATIONS,
    TALLY_RESTORES,
    TALLY_OLD_COPIES,
    TALLY_RECONCILED,
    TALLY_RECONCILED_PARKED,
    TALLY_KINDS,
};

struct tally {
    uint64_t counts[TALLY_KINDS];
    uint64_t digest; // of all journals: equal seeds give equal journals, wherever their memory lies
};

void tally_add(struct tally *sum, const struct tally *more);

/* One line: every kind with its count, and the digest. */
void tally_print(const struct tally *tally);

/* The text of a kind that never happened; NULL: all did. */
const char *tally_missing(const struct tally *tally);
