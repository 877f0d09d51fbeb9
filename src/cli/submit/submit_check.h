/* SPDX-License-Identifier: MIT */
/* Warnings about a request that would fail when it starts. */
#pragma once

#include <jansson.h>

#include "cli/options/call.h"

/*
 * What submit_check_ask() says. Warns if the directory of -C or -o is missing or closed to this user;
 * if the command does not exist or is not executable, with a command to fix it; if the script of an
 * interpreter does not exist; and if -o names a directory or a file that is not empty. It only warns: what is
 * missing here may exist on the node, or by then. Prints nothing with --quiet, for an mgpud on another
 * machine, and about what depends on the setup or the image.
 */
void submit_check(struct call *call, const json_t *command);

/* The same for a script whose option lines have been read; `command` is NULL if its text is sent. */
void submit_check_script(struct call *call, const json_t *command);

/* The part about the command, for one of several with the same options. */
void submit_check_command(const struct call *call, const json_t *command);

/* Says so if the `begin` of these members of a request has passed, and warns about a `gpu_mem` that is too
 * small for any program, a signal that is due at the start, and nodes that are not there. Prints nothing with
 * --quiet. */
void submit_check_ask(struct call *call, const json_t *ask);

/* Warns about the file of a script that /bin/sh would run, as it names no interpreter, though its name says
 * that it is of another language. */
void submit_check_interpreter(const struct call *call, const char *path);
