/* SPDX-License-Identifier: MIT */
/* The process that delivers a notification, after the fork. */
#pragma once

#include "agent/notify/notifier.h"
#include "job/launch.h"

/* Switches to the user and executes the program. `spec` names the cgroups to enter. Standard error is
 * descriptor 3. Returns only after a failure, with an exit status, and after writing the reason there. */
int notifier_child_run(const struct notifiers_options *options, const struct message_notify *request,
    const struct launch_spec *spec);
