/* SPDX-License-Identifier: MIT */
/*
 * The agent's side of the GPU helper processes: starts one, reads its reports, replaces it when it falls
 * silent. A GPU that does not answer is left out and tried again beside the others, which go on.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "agent/gpu/child.h"
#include "agent/gpu/report.h"
#include "agent/gpu/roster.h"
#include "wire/gpu_spec.h"

#define GPU_HELPERS_MAX 8U // processes at a time, with those that cannot be killed

struct gpu_helper;

extern const struct gpu_helper_timing gpu_helper_defaults;

/* Called with every report, and whenever GPUs become lost, with all GPUs that were ever seen. The first call
 * comes after told_ms at the latest, however long the driver takes to start. The report is the helper's, its
 * GPUs are the roster's. */
typedef void gpu_helper_fn(void *arg, const struct gpu_report *report);

/* Forks the first helper. The roster is borrowed. */
struct gpu_helper *gpu_helper_new(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, struct gpu_roster *roster, gpu_helper_fn *on_report, void *arg);

/* Has the GPUs of these grants (struct gpu_grant) looked at at once, all when NULL; returns the number that
 * the `answers` of each of them reaches when that was done, unless it is lost by then. When nothing can be
 * asked, the next helper's first report answers. */
uint64_t gpu_helper_ask(struct gpu_helper *helper, const struct record_list *grants);

/* Has these GPUs, by UUID, opened by no helper, and all others again; what comes of it is in the reports. The
 * roster keeps it for the next agent. */
void gpu_helper_release(struct gpu_helper *helper, const struct strings *uuids);

/* Passes the last report on once more, as one between two samples, if there was one. */
void gpu_helper_repeat(struct gpu_helper *helper);

/* Ends the helper processes. NULL is fine. */
void gpu_helper_free(struct gpu_helper *helper);
