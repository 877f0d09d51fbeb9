/* SPDX-License-Identifier: MIT */
/* A shepherd that only makes shepherds: the agent's requests come in on `fd` (base/fork_request.h). */
#pragma once

/* Serves until the agent closes its side; the shepherds it made live on. In each of them it returns, with
 * that shepherd's exit status, never in the server: there it exits. `argc` and `argv` are main's: a shepherd
 * shows its step in them. */
int fork_server_run(int fd, int argc, char **argv);
