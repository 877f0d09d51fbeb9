/* SPDX-License-Identifier: MIT */
/* The agent of a machine that has joined: holds the node's key, dials the controller, and keeps a worker. */
#pragma once

#include "agent/host/options.h"

/* Runs until it is told to end. Jobs go on without it. The exit status of the program. */
int uplink_run(const struct agent_options *options);
