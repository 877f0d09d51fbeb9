/* SPDX-License-Identifier: MIT */
/* From the open gate until no process of the step is left. */
#pragma once

#include "shepherd/record.h"
#include "shepherd/shepherd.h"

/* Waits for the end of the command while carrying out the agent's commands, then kills the rest of the step
 * and waits until it is empty. Sets `ending`. Allocates nothing. */
void watch_step(struct shepherd *shepherd, struct ending *ending);
