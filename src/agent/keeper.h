/* SPDX-License-Identifier: MIT */
/* The process that keeps an agent running and connected while the controller, which may not be root, is
 * running. */
#pragma once

/* Starts a worker, "/proc/self/exe" with the same arguments and --link-fd, sends the other end of its link
 * over `control_fd`, and restarts it when it ends. Returns the exit status of the program when the peer of
 * `control_fd` has closed. */
int keeper_run(int control_fd, int argc, char **argv);
