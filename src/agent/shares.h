/* SPDX-License-Identifier: MIT */
/* The ways in which this node can enforce shares of GPUs. */
#pragma once

#include <event2/event.h>

#include "agent/confine/limits.h"
#include "agent/host/options.h"
#include "agent/mps/mps.h"
#include "job/share.h"

struct shares {
    struct share_ways ways;
    struct mps *mps; // NULL: not installed
};

/* Tests which ways work on this node; `limits` are borrowed. */
void shares_find(struct shares *shares, const struct limits *limits);

/* Opens MPS, if it is installed; mps_free() closes it. */
void shares_open_mps(struct shares *shares, struct event_base *base, const struct agent_options *options,
    mps_ready_fn *on_ready, void *arg);

/* For HELLO: a bit for each kind that works here, with NODE_SHARES_KNOWN. */
uint32_t shares_bits(const struct shares *shares);

/* A report of the GPUs (struct gpu_state, their processes with owners) before it is sent to the controller.
 */
void shares_report(struct shares *shares, struct record_list *gpus);
