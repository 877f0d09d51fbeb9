/* SPDX-License-Identifier: MIT */
/* The agent of a joined machine: holds the node's key, connects to the controller, and keeps a worker
 * running. */
#pragma once

#include "agent/host/options.h"

/* Runs until it is told to exit; jobs continue without it. Returns the exit status of the program. */
int uplink_run(const struct agent_options *options);
