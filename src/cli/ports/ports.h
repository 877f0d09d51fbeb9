/* SPDX-License-Identifier: MIT */
/* The verbs of this folder, for commands.c. */
#pragma once

#include "cli/options/call.h"

extern const struct command command_forward;
extern const struct command command_notebook;
extern const struct command command_ssh_proxy;
