/* SPDX-License-Identifier: MIT */
/* A shepherd that only creates shepherds: the agent's requests arrive on `fd` (base/fork_request.h). */
#pragma once

/* Serves until the agent closes its side; shepherds already created continue. Returns only in the new
 * shepherds, with the shepherd's exit status; the server exits itself. `argc` and `argv` are main's: a
 * shepherd shows its step in them. */
int fork_server_run(int fd, int argc, char **argv);
