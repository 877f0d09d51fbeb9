/* SPDX-License-Identifier: MIT */
/* The fields of sacct. */
#pragma once

#include "compat/slurm/table.h"

/* Terminated by a NULL name. */
extern const struct slurm_column slurm_sacct_columns[];

/* The GPU models that the job requested, which are its constraints. */
char *slurm_text_constraints(const json_t *job, int64_t now_ms);
