/* SPDX-License-Identifier: MIT */
/* The agent's side of the GPU helper process: starts it, reads its reports, replaces it when it falls silent.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "agent/gpu_report.h"
#include "wire/gpu_spec.h"

struct gpu_helper;

struct gpu_helper_timing {
    int64_t period_ms;      // between samples
    int64_t first_ms;       // most time for the first report: the driver starts its devices
    int64_t silent_ms;      // later, a helper that is silent for so long hangs
    int64_t retry_first_ms; // before a helper that ended is replaced
    int64_t retry_max_ms;   // doubled each time up to this
};
extern const struct gpu_helper_timing gpu_helper_defaults;

/* Called with every report, and when the helper hangs or dies with the last one, its GPUs marked lost. The
 * first call comes within first_ms. The report is the helper's. */
typedef void gpu_helper_fn(void *arg, const struct gpu_report *report);

/* Forks the first helper. */
struct gpu_helper *gpu_helper_new(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, gpu_helper_fn *on_report, void *arg);

/* Has the GPUs looked at at once; returns the number that the `answers` of that report will have reached. */
uint64_t gpu_helper_ask(struct gpu_helper *helper);

/* Ends the helper process. NULL is fine. */
void gpu_helper_free(struct gpu_helper *helper);
