/* SPDX-License-Identifier: MIT */
/* The agent of this node: started by mgpud before it drops root, and restarted by its own keeper
 * (agent/keeper.c). */
#pragma once

#include "base/error.h"

struct controller;
struct agent_process;

/* Starts `mgpu-agent --keep`; to be called as root. Links arrive later through the event loop. `log_fd`
 * becomes its standard error, unless it is -1. */
int agent_process_start(
    struct controller *controller, int log_fd, struct agent_process **ret, struct error *err);

/* Starts accepting links from the keeper. */
int agent_process_watch(struct agent_process *agent, struct error *err);

/* Closes the keeper's socket: keeper and worker exit, jobs continue. */
void agent_process_free(struct agent_process *agent);
