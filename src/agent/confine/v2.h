/* SPDX-License-Identifier: MIT */
/* Controllers of cgroup v2: who has them is decided from the top of the tree down. */
#pragma once

#include "base/error.h"

/* Gives the controller to the children of `instance`, whose parent must give it to `instance` first; it stays
 * on when it was on. Only the two of them are ever changed. */
int v2_enable(const char *instance, const char *controller, struct error *err);
