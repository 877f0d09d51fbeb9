/* SPDX-License-Identifier: MIT */
/* The first process of a container: podman calls it as `/run/podman-init -- COMMAND...`. */
#pragma once

#include <stdbool.h>

/* Runs the command, hands on what signals come, reaps, and returns with the exit status when it is over. */
int first_main(char **argv);

/* This program needs nothing but itself, so that it runs in any image. */
bool first_is_possible(void);
