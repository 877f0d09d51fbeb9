/* SPDX-License-Identifier: MIT */
/* I of a job that starts before it has its GPUs: processes of the job that open a GPU wait. */
#pragma once

#include <stdbool.h>

#include "job/launch.h"

/*
 * Puts the calling process, which is still root and in the spool directory, and everything it starts, behind
 * a gate (base/node/open_gate.h). Does nothing for a job that does not start early. Returns 0 or a negative
 * errno.
 */
int gpu_wait_enter(const struct launch_spec *spec);

/* True behind the gate: gpu_wait_serve() has to be called. */
bool gpu_wait_is_on(void);

/* Answers the processes behind the gate until a child has ended, or for `timeout_ms` (-1: no limit). SIGCHLD
 * is blocked. */
void gpu_wait_serve(int timeout_ms);
