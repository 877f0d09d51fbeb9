/* SPDX-License-Identifier: MIT */
/* POST /job/submit and /job/ID of slurmrestd: the properties of a job as options of sbatch, and as changes of
 * scontrol. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

/* Appends the words of a command line of sbatch: options, "--", and the arguments of the script. -EINVAL for
 * a property that does not exist, or has no such value. */
int rest_options(const json_t *properties, struct strings *words, struct error *err);

/* Appends the words of `scontrol update` that change those properties: "TimeLimit=30". -EINVAL for one that
 * does not exist, or that is fixed at submission. */
int rest_changes(const json_t *properties, struct strings *words, struct error *err);

/* Runs a command of Slurm, this program by another name, with `input` on its standard input. With `job`, in
 * the environment and directory that it names. Returns its exit status, and what it printed. */
int rest_run(
    const struct strings *words, const char *input, const json_t *job, char **ret_out, char **ret_err);
