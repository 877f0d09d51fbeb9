/* SPDX-License-Identifier: MIT */
/* From the open gate to the moment when nothing of the step is left. */
#pragma once

#include "shepherd/record.h"
#include "shepherd/shepherd.h"

/* Waits for the end of the command, carries out the agent's commands, then ends the rest of the step and
 * waits until it is empty. Fills `ending`. Allocates nothing. */
void watch_step(struct shepherd *shepherd, struct ending *ending);
