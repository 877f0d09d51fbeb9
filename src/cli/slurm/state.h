/* SPDX-License-Identifier: MIT */
/* What Slurm calls the states of jobs, and why they wait or how they ended. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct slurm_state {
    const char *name, *compact; // "PENDING", "PD"
    bool is_over;
};

/* That of a job of the API. */
const struct slurm_state *slurm_state_of(const json_t *job);

/* By its name or its short form, in any case; NULL: there is none. */
const struct slurm_state *slurm_state_find(const char *name);

/* "Resources", "NonZeroExitCode", "None". */
const char *slurm_reason_of(const json_t *job);

/* As `ExitCode` has it: exit status and signal. */
void slurm_exit_of(const json_t *job, int *ret_code, int *ret_signal);
