/* SPDX-License-Identifier: MIT */
/* A verb in several processes of one job. */
#pragma once

#include "lab/cuda/probes.h"

/* Runs `run` in that many processes (options->processes), each of which ends with the status that it returns.
 * Prints a last line with how many failed; PROBE_WRONG if any did. */
int probe_together(const struct probe_options *options,
    int (*run)(const struct probe_options *options, void *arg), void *arg);
