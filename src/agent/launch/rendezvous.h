/* SPDX-License-Identifier: MIT */
/* What a part of a job on several nodes is told of the others, in words that launchers know. */
#pragma once

#include "base/strings.h"
#include "wire/message.h"

/* Sets nothing when the launch is no part. `hostfile`: the path of its list of hosts. */
void rendezvous_set(struct strings *env, const struct message_launch *launch, const char *hostfile);
