/* SPDX-License-Identifier: MIT */
/* Which processes of a step a signal is for, by what each of them makes of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum role {
    ROLE_OTHER,   // it would only die of the signal, and nobody needs it
    ROLE_HANDLER, // it handles the signal: a handler, or blocked and taken by sigwait(3) or signalfd(2)
    ROLE_HOLDER,  // it would only die, and a descendant of it is a handler: a script's shell, a launcher
    ROLE_DEAF,    // it ignores the signal
    ROLE_READER,  // it would only die, and reads what a handler writes: tee(1) in a pipeline, mpirun
    ROLE_DONE,    // it would only die, and is stopped: a holder below which no handler is left
};
#define ROLE_MASK(role) (1U << (role))
#define ROLES_ALL       (~0U)

/* False for signals that cannot be handled, that do no harm by default, or whose handlers the kernel does not
 * show (those of real time): they are for everybody. */
bool roles_matter(int signal);

/* A survey: begins, takes each process of the step, and then decides. Allocates nothing; processes beyond
 * those that fit stay unknown. */
void roles_begin(int signal);
void roles_add(pid_t pid);
void roles_decide(void);

/* True if a process of the survey blocks the signal and does not catch it: for long, or only while it starts
 * another one. */
bool roles_are_unsettled(void);

/* Results of the last survey. An unknown process is ROLE_OTHER: it was started since. */
enum role roles_of(pid_t pid);
uint32_t roles_count(enum role role);
