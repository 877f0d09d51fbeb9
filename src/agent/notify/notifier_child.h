/* SPDX-License-Identifier: MIT */
/* The process that tells somebody, from the fork on. */
#pragma once

#include "agent/notify/notifier.h"
#include "job/launch.h"

/* Becomes the user and executes what tells. `spec` names the cgroups to enter. Standard error is
 * descriptor 3. Only returns, with an exit status, after a failure that it has written there. */
int notifier_child_run(const struct notifiers_options *options, const struct message_notify *request,
    const struct launch_spec *spec);
