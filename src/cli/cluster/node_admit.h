/* SPDX-License-Identifier: MIT */
/* mgpu node token and mgpu node forget: adding and removing nodes. */
#pragma once

#include "cli/options/call.h"

extern const struct command node_token_command;
extern const struct command node_forget_command;
