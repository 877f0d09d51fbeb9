/* SPDX-License-Identifier: MIT */
/* Jobs that fail because the memory of their GPU is used up. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/*
 * Makes END_GPU_OOM of the end of a command that failed and whose last lines say so. Returns the sentence of
 * the end, which the caller frees after the event; NULL: it was another end.
 */
char *core_gpu_oom_recognise(struct job_event *event);

/* The larger request with which the job is tried again after this end; false: it is not. The caller clears
 * *ret. */
bool core_gpu_oom_enlarge(const struct core *core, const struct core_entry *entry,
    const struct job_event *event, struct job_ask *ret);

/* Gives the requeued job that request. */
void core_gpu_oom_edit(struct core *core, struct core_entry *entry, struct job_ask *larger);
