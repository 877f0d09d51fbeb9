/* SPDX-License-Identifier: MIT */
/* The agent of this node: started by mgpud before it gives up root, kept alive by its own keeper
 * (agent/keeper.c). */
#pragma once

#include "base/error.h"

struct controller;
struct agent_process;

/* Starts `mgpu-agent --keep`; call it while still root. Links arrive later through the loop. `log_fd` becomes
 * its standard error, unless it is -1. */
int agent_process_start(
    struct controller *controller, int log_fd, struct agent_process **ret, struct error *err);

/* Begins to take links that the keeper sends. */
int agent_process_watch(struct agent_process *agent, struct error *err);

/* Closes the keeper's socket: keeper and worker leave, jobs go on. */
void agent_process_free(struct agent_process *agent);
