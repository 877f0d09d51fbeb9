/* SPDX-License-Identifier: MIT */
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const words[TALLY_KINDS] = {
    [TALLY_JOBS] = "requests",
    [TALLY_HAPPENINGS] = "happenings",
    [TALLY_DECISIONS] = "decisions replayed",
    [TALLY_CONTROLLER_DEATHS] = "controllers died",
    [TALLY_COMMITS_KEPT] = "commits survived that",
    [TALLY_COMMITS_LOST] = "commits did not",
    [TALLY_SUBMITS_AGAIN] = "submits said again",
    [TALLY_AGENT_DEATHS] = "agents died",
    [TALLY_AGENT_STOPS] = "agents stopped for a while",
    [TALLY_SHEPHERD_DEATHS] = "shepherds died",
    [TALLY_REBOOTS] = "reboots",
    [TALLY_NODES_GONE] = "nodes gone for ever",
    [TALLY_CLOCK_STEPS] = "steps of mgpud's wall clock",
    [TALLY_CUTS] = "cut connections",
    [TALLY_SILENCES] = "silent connections",
    [TALLY_HALF_OPEN] = "connections given up at one end only",
    [TALLY_OVERLAPS] = "second connections of a node",
    [TALLY_FRAMES] = "frames",
    [TALLY_FRAMES_LOST] = "lost frames",
    [TALLY_ACKS_LOST] = "lost RELEASE_ATTEMPTs",
    [TALLY_FRAMES_LATE] = "frames from an older connection",
    [TALLY_FRAMES_TWICE] = "frames that came twice",
    [TALLY_FRAMES_STRAY] = "of these on another connection",
    [TALLY_OLD_HELLOS] = "HELLOs that came too late",
    [TALLY_REBOOTS_EARLY] = "reboots before the old connection was missed",
    [TALLY_TWINS] = "machines with another's name",
    [TALLY_WIPES] = "wiped spools",
    [TALLY_FENCES] = "fences",
    [TALLY_FENCES_REFUSED] = "fences of a living node refused",
    [TALLY_FENCES_ALIVE] = "fences of a node that lives, cut off",
    [TALLY_DISOWNED] = "commands that ran there",
    [TALLY_PEERS_FAULTS] = "parts that failed because another was gone",
    [TALLY_LEASE_ENDS] = "leases ended by shepherds",
    [TALLY_TROUBLES] = "starts refused by nodes in trouble",
    [TALLY_BARS_OF_ALL] = "of these for all users",
    [TALLY_REFUSALS] = "jobs left out of nodes",
    [TALLY_READMISSIONS] = "of these tried there again",
    [TALLY_LOSSES] = "attempts ended by their node's loss",
    [TALLY_WIDE_RUNS] = "jobs run on several nodes",
    [TALLY_PREEMPTIONS] = "jobs gave way",
    [TALLY_REQUEUES] = "went back to the queue",
    [TALLY_RETURNS] = "launches returned",
    [TALLY_CANCELS] = "cancelled",
    [TALLY_SUSPENSIONS] = "suspended or continued",
    [TALLY_PARKS] = "parked",
    [TALLY_PARKS_PREEMPTED] = "of these to give way",
    [TALLY_PARKS_TIME_LIMIT] = "at their time limit",
    [TALLY_PARKS_RULE] = "by the rule that short jobs go first",
    [TALLY_PARKS_DUE] = "of these because their GPUs were due",
    [TALLY_RULE_HISTORIES] = "histories for that",
    [TALLY_RULE_IN_TIME] = "of these undisturbed and back within the bound",
    [TALLY_RULE_LOST] = "parked jobs that the driver could not continue",
    [TALLY_RECLAIMS] = "jobs that started again for parked ones",
    [TALLY_PARKS_WIDE] = "on several nodes",
    [TALLY_PARKS_REFUSED] = "could not be parked",
    [TALLY_PARK_RETURNS] = "returned",
    [TALLY_PARK_MOVES] = "of these on other GPUs",
    [TALLY_PARK_RETURNS_REFUSED] = "could not return yet",
    [TALLY_HELPER_DEATHS] = "helpers that park died",
    [TALLY_EARLY] = "started before their GPUs were free",
    [TALLY_EARLY_UNASKED] = "of these had not asked",
    [TALLY_EARLY_GRANTS] = "were given them",
    [TALLY_EARLY_ENDS] = "ended without",
    [TALLY_BEHIND] = "elements committed behind others",
    [TALLY_BEHIND_INHERITS] = "of these had their GPUs",
    [TALLY_BEHIND_FIRST] = "were reported before the one before them was over",
    [TALLY_BEHIND_RECALLS] = "were asked back",
    [TALLY_BEHIND_RETURNS] = "were given back",
    [TALLY_GPU_DRAINS] = "GPUs drained",
    [TALLY_GPU_RETURNS] = "GPUs back",
    [TALLY_EDITS] = "requests edited",
    [TALLY_DEADLINES] = "deadlines missed",
    [TALLY_NEVERS] = "dependencies that never came true",
    [TALLY_PAIRS] = "elements begun after their partners",
    [TALLY_SETTINGS] = "changes of settings",
    [TALLY_NODE_DRAINS] = "nodes drained",
    [TALLY_RESERVATIONS] = "reservations",
    [TALLY_RESTORES] = "restored backups",
    [TALLY_OLD_COPIES] = "old copies of the store",
    [TALLY_RECONCILED] = "jobs of which a node knew more",
    [TALLY_RECONCILED_PARKED] = "of these parked",
};

void tally_add(struct tally *sum, const struct tally *more)
{
    for (size_t i = 0; i < TALLY_KINDS; i++)
        sum->counts[i] += more->counts[i];
    sum->digest += more->digest; // whichever worker had which seed
}

void tally_print(const struct tally *tally)
{
    for (size_t i = 0; i < TALLY_KINDS; i++)
        (void)printf("%s%" PRIu64 " %s", i > 0 ? ", " : "", tally->counts[i], words[i]);
    (void)printf(", digest %016" PRIx64 "\n", tally->digest);
}

const char *tally_missing(const struct tally *tally)
{
    for (size_t i = 0; i < TALLY_KINDS; i++)
        if (tally->counts[i] == 0)
            return words[i];
    return NULL;
}
