/* SPDX-License-Identifier: MIT */
/* Which processes of a step should receive a signal, determined by how each of them reacts to it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum role {
    ROLE_OTHER,   // it would only die of the signal, and no other process needs it
    ROLE_HANDLER, // it handles the signal: a handler, or blocked and taken by sigwait(3) or signalfd(2)
    ROLE_HOLDER,  // it would only die, and has a descendant that is a handler: a script's shell, a launcher
    ROLE_DEAF,    // it ignores the signal
    ROLE_READER,  // it would only die, and reads the output of a handler: tee(1) in a pipeline, mpirun
    ROLE_DONE,    // it would only die, and is stopped: a holder that no longer has a handler below it
};
#define ROLE_MASK(role) (1U << (role))
#define ROLES_ALL       (~0U)

/* False for signals that cannot be handled, that are harmless by default, or whose handlers the kernel does
 * not show (real-time signals): they are sent to all processes. */
bool roles_matter(int signal);

/* A survey: roles_begin(), then roles_add() for each process of the step, then roles_decide(). Allocates
 * nothing; processes that do not fit stay unknown. */
void roles_begin(int signal);
void roles_add(pid_t pid);
void roles_decide(void);

/* True if a process of the survey blocks the signal without catching it. It may do so permanently, or only
 * while it starts another process. */
bool roles_are_unsettled(void);

/* Results of the last survey. A process that was started since is unknown, and is ROLE_OTHER. */
enum role roles_of(pid_t pid);
uint32_t roles_count(enum role role);
