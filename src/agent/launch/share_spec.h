/* SPDX-License-Identifier: MIT */
/* The launch spec of a job whose share of a GPU is enforced. */
#pragma once

#include "agent/confine/confine.h"
#include "agent/launch/launch_spec.h"
#include "agent/mps/mps.h"
#include "job/share.h"

/* The parts that enforce shares here; all borrowed. */
struct share_parts {
    const struct share_ways *ways; // NULL: nothing does
    struct mps *mps;               // NULL: none
    const struct confine *confine;
    struct confine_state *cells;
};

/*
 * As launch_spec_make(), with `node->shares` from `parts`, and prepares what the chosen kind needs: with MPS
 * the control daemon, and the variables by which the job's processes find it. If that fails and the job
 * allows any kind, the next one is used. -EINPROGRESS: call again when MPS is ready (mps.h). The caller
 * clears *ret always.
 */
int share_make_spec(const struct share_parts *parts, const struct message_launch *launch,
    const struct job_spec *job, const struct user *user, struct launch_node *node, struct launch_spec *ret,
    struct error *err);
