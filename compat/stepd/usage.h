/* SPDX-License-Identifier: MIT */
/* What a task of a step uses: sampled while it runs, and as the kernel counted it at its end. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "compat/stepd/frames.h"

/* Adds a sample of the process and its descendants: their CPU time so far, and the highest sum of their
 * resident memory. */
void usage_sample(struct step_usage *usage, pid_t pid);

/* Replaces the CPU time by that of an ended process and those of its children that it has waited for; its
 * largest process counts if that is more than any sample. */
void usage_end(struct step_usage *usage, const struct rusage *counted);

/* How long after the start of a step the next sample is due, given how many there were: often at first. */
int64_t usage_next_ms(uint32_t samples);
