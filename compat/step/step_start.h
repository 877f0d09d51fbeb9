/* SPDX-License-Identifier: MIT */
/* A task that is a child of srun. */
#pragma once

#include <signal.h>

#include "compat/step/step.h"

/* Starts it; `mask`: the signals that are blocked in it. With --pty on another node, it is represented by the
 * child. */
int step_start(struct step *step, struct step_task *task, const sigset_t *mask, struct error *err);

/* Opens the files of --output and --error for a task whose output srun writes itself. */
int step_open_files(const struct step *step, struct step_task *task, struct error *err);
