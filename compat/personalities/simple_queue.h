/* SPDX-License-Identifier: MIT */
/* mgpu_simple_client queue: all jobs and all nodes, in that scheduler's format. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"

/* The `run` of its command. */
int simple_queue_run(struct call *call, int argc, char **argv, struct error *err);
