/* SPDX-License-Identifier: MIT */
/* The switch from the shepherd's identity to the user's, and the proof that it is whole. */
#pragma once

#include "job/launch.h"
#include "shepherd/steps.h"

/* Sets limits, umask, groups, gid and uid of the spec. On failure returns a negative errno and the step; the
 * process is then good for nothing but _exit. Without root only our own uid can be asked for. */
int user_become(const struct launch_spec *spec, enum launch_step *ret_step);
