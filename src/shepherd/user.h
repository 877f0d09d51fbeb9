/* SPDX-License-Identifier: MIT */
/* Switches from the shepherd's identity to the user's, and verifies it. */
#pragma once

#include "job/launch.h"
#include "shepherd/steps.h"

/* Sets limits, umask, groups, gid and uid of the spec. On failure returns a negative errno and the step; the
 * process must then _exit. Without root, only the current uid is possible. */
int user_become(const struct launch_spec *spec, enum launch_step *ret_step);

/* Lowers the limit of open descriptors to that of the spec. user_become() leaves it higher, because the
 * kernel compares the limit with all of the user's descriptors in flight whenever one is sent. Returns 0 or a
 * negative errno. */
int user_limit_files(const struct launch_spec *spec);
