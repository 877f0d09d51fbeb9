/* SPDX-License-Identifier: MIT */
/* One GPU helper process as the agent sees it: its reports, its silence and its end. */
#pragma once

#include <event2/event.h>

#include "agent/gpu/report.h"
#include "agent/gpu/progress_page.h"
#include "wire/gpu_spec.h"

struct gpu_child;

struct gpu_helper_timing {
    int64_t period_ms;      // between samples
    int64_t told_ms;        // after so long without a report the owner is told that none has come
    int64_t first_ms;       // most time for the driver to start, and for it to open each GPU
    int64_t silent_ms;      // later, a helper that begins nothing new for so long hangs
    int64_t leave_ms;       // for a helper that is not needed any more, before it is killed
    int64_t retry_first_ms; // before a helper that ended is replaced, or an ailing GPU is tried again
    int64_t retry_max_ms;   // doubled each time up to this
};

/* None of these may free the child. */
struct gpu_child_events {
    /* The report may be changed, and is cleared afterwards. */
    void (*on_report)(void *arg, struct gpu_child *child, struct gpu_report *report);
    /* It hangs, has ended or speaks nonsense; nothing more comes but its end. `is_silent`: it hangs. */
    void (*on_failure)(void *arg, struct gpu_child *child, const char *why, bool is_silent);
    /* The process is gone. */
    void (*on_gone)(void *arg, struct gpu_child *child);
    void *arg;
};

/* Forks. The driver may take `open_ms` to start, and as long for each GPU. The page becomes the child's;
 * NULL when no process can be had, and then it is freed. */
struct gpu_child *gpu_child_start(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, int64_t open_ms, struct gpu_progress *page,
    const struct gpu_child_events *events);

/* Closes its socket, so that it leaves between two calls of the driver; killed in the middle of one it could
 * leave a GPU behind that needs a reset. One that has not left after leave_ms is sent SIGKILL, which a
 * process inside the driver need not follow. on_gone comes when it is gone. */
void gpu_child_dismiss(struct gpu_child *child);

/* Has it look at once at the GPUs of these grants (struct gpu_grant), at all when NULL or when one is not
 * known; `answers` of a GPU is the number of the latest such question that it has answered. One that cannot
 * be delivered now is answered by the next sample. */
void gpu_child_ask(struct gpu_child *child, const struct record_list *grants);

/* The key of the GPU it is at or hangs at, "": none. */
const char *gpu_child_key(const struct gpu_child *child);

/* What it was told, and tells. */
const struct gpu_progress *gpu_child_progress(const struct gpu_child *child);

/* True once the driver has started. */
bool gpu_child_is_open(const struct gpu_child *child);

/* Has it leave by itself, as at the end of this process, and forgets it. NULL is fine. */
void gpu_child_free(struct gpu_child *child);
