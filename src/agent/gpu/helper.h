/* SPDX-License-Identifier: MIT */
/*
 * Manages the GPU helper processes: starts one, reads its reports, and replaces it when it becomes silent. A
 * GPU that does not respond is excluded and probed separately, while the others stay in use.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "agent/gpu/child.h"
#include "agent/gpu/report.h"
#include "agent/gpu/roster.h"
#include "wire/gpu_spec.h"

#define GPU_HELPERS_MAX 8U // processes at a time, including those that cannot be killed

struct gpu_helper;

extern const struct gpu_helper_timing gpu_helper_defaults;

/* Called with every report, and when GPUs become lost, with all GPUs ever seen. The first call is made after
 * notice_ms at the latest, even if the driver takes longer to start. The report is the helper's, its GPUs are
 * the roster's. */
typedef void gpu_helper_fn(void *arg, const struct gpu_report *report);

/* Forks the first helper. The roster is borrowed. */
struct gpu_helper *gpu_helper_new(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, struct gpu_roster *roster, gpu_helper_fn *on_report, void *arg);

/* Requests an immediate check of the GPUs of these grants (struct gpu_grant), or of all if NULL. Returns the
 * number that the `answers` of each of them will have reached, unless it is lost by then. If no helper is
 * available, the first report of the next one answers. */
uint64_t gpu_helper_ask(struct gpu_helper *helper, const struct record_list *grants);

/* Keeps these GPUs (UUIDs) closed in all helpers, and opens all others again; reports show the result. The
 * roster stores this for the next agent. */
void gpu_helper_release(struct gpu_helper *helper, const struct strings *uuids);

/* Passes on the last report again, if there was one, as one between two samples. */
void gpu_helper_repeat(struct gpu_helper *helper);

/* Ends the helper processes. NULL is allowed. */
void gpu_helper_free(struct gpu_helper *helper);
