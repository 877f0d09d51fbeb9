/* SPDX-License-Identifier: MIT */
/* Which GPUs of the step a task sees: --gpus-per-task and --gpu-bind. */
#pragma once

#include "compat/step/step.h"

/* -EINVAL: --gpu-bind is malformed, or names a GPU that a node of the step does not have. */
int step_check_gpus(const struct step *step, struct error *err);

/* The variables that select them. */
void step_set_gpus(const struct step *step, const struct step_task *task, struct strings *env);
