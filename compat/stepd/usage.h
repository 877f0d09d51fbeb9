/* SPDX-License-Identifier: MIT */
/* The usage of a task of a step: sampled while it runs, and as counted by the kernel at its end. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "compat/stepd/frames.h"

/* Adds a sample of the process and its descendants: their CPU time so far, and the highest sum of their
 * resident memory. */
void usage_sample(struct step_usage *usage, pid_t pid);

/* Replaces the CPU time by that of an ended process and of the children that it has waited for. Its largest
 * process is used if it exceeds all samples. */
void usage_end(struct step_usage *usage, const struct rusage *counted);

/* The time of the next sample after the start of a step, given the number so far: often at first. */
int64_t usage_next_ms(uint32_t samples);
