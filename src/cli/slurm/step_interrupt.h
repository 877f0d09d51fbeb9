/* SPDX-License-Identifier: MIT */
/* Ctrl-C of a step: the first one shows the state of its tasks, another within a second ends it. */
#pragma once

#include "cli/slurm/step.h"

void step_interrupt(struct step *step);
