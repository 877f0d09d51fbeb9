/* SPDX-License-Identifier: MIT */
/* One GPU helper process as the agent sees it: its reports, its silence and its end. */
#pragma once

#include <event2/event.h>

#include "agent/gpu/progress_page.h"
#include "agent/gpu/report.h"
#include "wire/gpu_spec.h"

struct gpu_child;

struct gpu_helper_timing {
    int64_t period_ms;      // between samples
    int64_t notice_ms;      // the owner is notified after this time without a report
    int64_t first_ms;       // maximum time for the driver to start, and for each GPU to open
    int64_t silent_ms;      // later, a helper hangs if it begins nothing new for this time, and could have
    int64_t leave_ms;       // time for a dismissed helper to exit before it is killed
    int64_t retry_first_ms; // before a helper that ended is replaced, or a failing GPU is probed again
    int64_t retry_max_ms;   // doubled each time up to this
};

/* None of these may free the child. */
struct gpu_child_events {
    /* The report may be changed, and is cleared afterwards. */
    void (*on_report)(void *arg, struct gpu_child *child, struct gpu_report *report);
    /* It hangs, has ended or sent invalid data; only on_gone follows. `is_silent`: it hangs. */
    void (*on_failure)(void *arg, struct gpu_child *child, const char *why, bool is_silent);
    /* The process has ended. */
    void (*on_gone)(void *arg, struct gpu_child *child);
    void *arg;
};

/* Forks. The driver may take `open_ms` to start, and the same for each GPU. Takes ownership of the page;
 * NULL, with the page freed, if no process could be created. */
struct gpu_child *gpu_child_start(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, int64_t open_ms, struct gpu_progress *page,
    const struct gpu_child_events *events);

/* Closes its socket, so that it exits between two driver calls; killing it in the middle of one could leave a
 * GPU that needs a reset. If it has not exited after leave_ms, it is sent SIGKILL, which has no effect on a
 * process inside the driver. on_gone is called when it has ended. */
void gpu_child_dismiss(struct gpu_child *child);

/* Requests an immediate check of the GPUs of these grants (struct gpu_grant), or of all if NULL or if one is
 * unknown; `answers` of a GPU is the number of the last request it has answered. If the request cannot be
 * delivered now, the next sample answers it. */
void gpu_child_ask(struct gpu_child *child, const struct record_list *grants);

/* The key of the GPU it is working on or hanging at, "": none. */
const char *gpu_child_key(const struct gpu_child *child);

/* Its page. */
const struct gpu_progress *gpu_child_progress(const struct gpu_child *child);

/* True once the driver has started. */
bool gpu_child_is_open(const struct gpu_child *child);

/* Lets it exit by itself and forgets it. NULL is allowed. */
void gpu_child_free(struct gpu_child *child);
