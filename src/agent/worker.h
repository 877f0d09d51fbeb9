/* SPDX-License-Identifier: MIT */
/* The agent's worker: all its parts, from its lock to its link. */
#pragma once

#include "agent/host/options.h"

/* Serves the controller on options->link_fd until that closes; returns the exit status of the program. */
int worker_run(const struct agent_options *options);
