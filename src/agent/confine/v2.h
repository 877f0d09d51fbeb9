/* SPDX-License-Identifier: MIT */
/* Enables controllers of cgroup v2, which must be done from the top of the tree downwards. */
#pragma once

#include "base/error.h"

/* Enables the controller for the children of `instance`, and before that for `instance` in its parent, unless
 * it is enabled already. Only these two are ever changed. */
int v2_enable(const char *instance, const char *controller, struct error *err);

/* Enables it for the children of this directory alone. */
int v2_enable_children(const char *dir, const char *controller, struct error *err);
