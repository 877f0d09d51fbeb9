/* SPDX-License-Identifier: MIT */
/* Enables controllers of cgroup v2, which must be done from the top of the tree downwards. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* True for every cgroup with processes of its own except the root, which has no type. The kernel refuses to
 * enable memory there. It enables pids and cpu, but makes the cgroup a threaded domain, below which no
 * process can be started. */
bool v2_has_processes(const char *dir);

/* True if this directory has the controller, and could enable it for its children. */
bool v2_has_controller(const char *dir, const char *controller);

/* How the administrator can provide a cgroup for mgpud: a hint for an error. */
const char *v2_delegation(void);

/* Enables the controller for the children of `instance`, and before that for `instance` in its parent, unless
 * it is enabled already. Only these two are ever changed. */
int v2_enable(const char *instance, const char *controller, struct error *err);

/* Enables it only for the children of this directory. */
int v2_enable_children(const char *dir, const char *controller, struct error *err);
