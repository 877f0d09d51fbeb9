/* SPDX-License-Identifier: MIT */
/* That agent and controller hear each other: part of the agent's core. */
#pragma once

#include "agent/core/actions.h"

/* HELLO was sent: nothing of an earlier link counts any more. */
void heartbeat_greet(struct agent_core *core, int64_t boot_ms);

/* WELCOME answers it, and says how often to speak. */
void heartbeat_begin(struct agent_core *core, int64_t boot_ms, const struct message_welcome *welcome);

/* The controller has heard what was said at `sent_ms`. */
void heartbeat_acknowledged(struct agent_core *core, int64_t boot_ms, int64_t sent_ms);

/* Fills in until when the attempt may run, as far as is known when it is launched. */
void heartbeat_lease(struct agent_core *core, struct attempt *attempt, struct message_launch *launch);

/* Speaks when it is time; gives the link up when nobody answers. Returns when to come back, 0: never. */
int64_t heartbeat_run(struct agent_core *core, int64_t boot_ms);
