/* SPDX-License-Identifier: MIT */
/* POST /job/submit and /job/ID of slurmrestd: the properties of a job as options of sbatch, and as changes of
 * scontrol. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

/* Appends the arguments of sbatch: options, "--", and the arguments of the script. -EINVAL for a property
 * that does not exist, or that does not allow the value. */
int rest_options(const json_t *properties, struct strings *words, struct error *err);

/* Appends the arguments of `scontrol update` that change those properties: "TimeLimit=30". -EINVAL for a
 * property that does not exist, or that is fixed at submission. */
int rest_changes(const json_t *properties, struct strings *words, struct error *err);

/* Runs a Slurm command, which is this program under another name, with `input` on its standard input; if
 * `job` is given, in its environment and directory. Returns its exit status, and its output. */
int rest_run(
    const struct strings *words, const char *input, const json_t *job, char **ret_out, char **ret_err);
