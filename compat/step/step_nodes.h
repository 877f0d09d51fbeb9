/* SPDX-License-Identifier: MIT */
#pragma once

#include "compat/step/step.h"

/* Sets the nodes of the step and their ranks: of `all`, those of the job, as many as --nodes says or all, but
 * no more than tasks; those of -w, others in their order, without those of -x. -EINVAL if it cannot be. */
int step_choose_nodes(struct step *step, const struct strings *all, struct error *err);
