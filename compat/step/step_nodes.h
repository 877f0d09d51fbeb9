/* SPDX-License-Identifier: MIT */
#pragma once

#include "compat/step/step.h"

/* Sets the nodes of the step and their ranks among `all`, the job's nodes: as many as --nodes requests, or
 * all, but not more than tasks. Those of -w come first, then others in their order, without those of -x.
 * -EINVAL if that is impossible. */
int step_choose_nodes(struct step *step, const struct strings *all, struct error *err);
