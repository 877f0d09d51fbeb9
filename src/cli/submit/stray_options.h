/* SPDX-License-Identifier: MIT */
/* Options of a request that were typed after the command, which gets them. */
#pragma once

#include "cli/options/call.h"

/*
 * Warns about words of the command that look like options of this verb, and prints the line with them before
 * the command. It changes nothing. A "--" before the command says that they are meant for it; then, with
 * --quiet, and for a single word nothing is printed.
 */
void stray_options_warn(const struct call *call, int argc, char *const *argv);
