/* SPDX-License-Identifier: MIT */
/*
 * A scope of systemd for an agent that was started from a shell. There it shares the cgroup of the session,
 * in which no controllers can be enabled for jobs; the scope is delegated to us and outlives the session.
 */
#pragma once

#define SCOPE_MANAGER "/run/systemd/system" // exists if systemd is the init
#define SCOPE_PREFIX  "mgpu-agent-"         // prefix of the names of mgpu's scopes
#define SCOPE_SUFFIX  ".scope"

/*
 * Executes this program again, with the same process id, descriptors and arguments, in its own scope, if
 * it is in the scope of a session. Returns if it is not, or if no scope can be created: `mgpu doctor` then
 * lists what is not enforced. Not for an ordinary user without lingering: systemd ends all their units with
 * the last session, which jobs must outlive.
 */
void scope_enter(char **argv);
