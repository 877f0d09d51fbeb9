/* SPDX-License-Identifier: MIT */
#pragma once

#include "compat/step/step.h"

/* Gives each task of the step its node and its place there, by --distribution. -EINVAL: the nodes that are
 * listed for the tasks are not those of the step, or ranks of MPI would not be numbered node by node. */
int step_layout(struct step *step, struct error *err);
