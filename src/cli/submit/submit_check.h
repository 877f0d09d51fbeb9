/* SPDX-License-Identifier: MIT */
/* Warnings about a request that would fail only when its turn comes. */
#pragma once

#include <jansson.h>

#include "cli/options/call.h"

/*
 * Warns when the directory of -C or -o does not exist, or the command is not there or cannot be executed,
 * with the command to type; and when the script of an interpreter is not there, or -o names a directory or a
 * file that has something in it. It only warns: what is missing here may be there on the node, or by then.
 * Says nothing with --quiet, to an mgpud on another machine, and of what only the setup or the image can
 * tell.
 */
void submit_check(const struct call *call, const json_t *command);
