/* SPDX-License-Identifier: MIT */
/* mgpu_simple_client queue: all jobs and all nodes, in the words of that scheduler. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"

/* The `run` of its command. */
int simple_queue_run(struct call *call, int argc, char **argv, struct error *err);
