/* SPDX-License-Identifier: MIT */
/* Heartbeats between agent and controller: part of the agent's core. */
#pragma once

#include "agent/core/actions.h"

/* HELLO was sent: the state of an earlier link is discarded. */
void heartbeat_greet(struct agent_core *core, int64_t boot_ms);

/* WELCOME was received, with the heartbeat interval. */
void heartbeat_begin(struct agent_core *core, int64_t boot_ms, const struct message_welcome *welcome);

/* The controller has acknowledged the message sent at `sent_ms`. */
void heartbeat_acknowledged(struct agent_core *core, int64_t boot_ms, int64_t sent_ms);

/* Its LAUNCH or PREPARE has arrived: from now on it has a lease of `lease_ms`, or none (0). */
void heartbeat_lease(const struct agent_core *core, struct attempt *attempt, int64_t lease_ms);

/* Sends a heartbeat when due; closes the link if the controller does not respond. Returns the time of the
 * next call, 0: never. */
int64_t heartbeat_run(struct agent_core *core, int64_t boot_ms);
