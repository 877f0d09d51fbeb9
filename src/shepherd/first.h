/* SPDX-License-Identifier: MIT */
/* The first process of a container: podman runs it as `/run/podman-init -- COMMAND...`. */
#pragma once

#include <stdbool.h>

/* Runs the command, forwards signals, reaps processes, and returns the exit status when the command has
 * ended. */
int first_main(char **argv);

/* True if this program is statically linked, so that it runs in any image. */
bool first_is_possible(void);
