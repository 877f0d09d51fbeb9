/* SPDX-License-Identifier: MIT */
/* Sets the variables that tell a rank of a job on several nodes about the others, as launchers such as
 * torchrun expect them. */
#pragma once

#include "base/strings.h"
#include "wire/message.h"

/* Sets nothing for a launch on one node. `hostfile`: the path of its list of hosts. */
void rendezvous_set(struct strings *env, const struct message_launch *launch, const char *hostfile);
