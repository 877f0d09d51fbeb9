/* SPDX-License-Identifier: MIT */
/*
 * A scope of systemd for an agent that was started from a shell. There it shares the cgroup of the session,
 * in which no controllers can be enabled for jobs; the scope is delegated to us and outlives the session.
 */
#pragma once

#define SCOPE_MANAGER "/run/systemd/system" // is there when systemd is the init
#define SCOPE_PREFIX  "mgpu-agent-"         // of the names of our scopes
#define SCOPE_SUFFIX  ".scope"

/*
 * Executes this program again, with the same process id, descriptors and arguments, in a scope of its own, if
 * it is in the scope of a session. Returns if it is not, or if there can be none: then `mgpu doctor` says
 * what is not enforced. Not as an ordinary user who does not linger: systemd ends what these have with their
 * last session, and jobs are to outlive it.
 */
void scope_enter(char **argv);
