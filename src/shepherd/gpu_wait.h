/* SPDX-License-Identifier: MIT */
/* I of a job that starts before it has its GPUs: its processes wait when they open one. */
#pragma once

#include <stdbool.h>

#include "job/launch.h"

/*
 * Puts the calling process, which is still root and in the spool directory, and what it starts, behind a gate
 * (base/node/open_gate.h). Nothing happens for a job that does not start early. Returns 0 or a negative
 * errno.
 */
int gpu_wait_enter(const struct launch_spec *spec);

/* True behind the gate: gpu_wait_serve() has to be called. */
bool gpu_wait_is_on(void);

/* Answers its processes until a child has ended, or for `timeout_ms` (-1: for ever). SIGCHLD is blocked. */
void gpu_wait_serve(int timeout_ms);
