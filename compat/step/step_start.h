/* SPDX-License-Identifier: MIT */
/* A task that is a child of srun. */
#pragma once

#include <signal.h>

#include "compat/step/step.h"

/* Starts it; `mask`: the signals that are blocked in it. With --pty on another node, it is represented by the
 * child. */
int step_start(struct step *step, struct step_task *task, const sigset_t *mask, struct error *err);
