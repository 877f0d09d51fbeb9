/* SPDX-License-Identifier: MIT */
/* Slurm's names for the states of jobs, the reasons of waiting, and ends. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

struct slurm_state {
    const char *name, *compact; // "PENDING", "PD"
    bool is_over;
};

/* The state of a job of the API. */
const struct slurm_state *slurm_state_of(const json_t *job);

/* Finds a state by name or short form, ignoring case; NULL: none. */
const struct slurm_state *slurm_state_find(const char *name);

/* Prints that `word` is not a job state, and lists the states, as Slurm does; returns -EINVAL. */
int slurm_state_refuse(const char *program, const char *word, struct error *err);

/* "Resources", "NonZeroExitCode", "None". */
const char *slurm_reason_of(const json_t *job);

/* The values of `ExitCode`: exit status and signal. */
void slurm_exit_of(const json_t *job, int *ret_code, int *ret_signal);
