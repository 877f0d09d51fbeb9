/* SPDX-License-Identifier: MIT */
/* The last report of the helper processes, and its delivery to the owner of struct gpu_helper. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/helper.h"
#include "agent/gpu/report.h"
#include "agent/gpu/roster.h"
#include "wire/gpu_spec.h"

struct gpu_last_report {
    struct gpu_report report;  // without its GPUs, which are in the roster
    struct gpu_roster *roster; // borrowed, as is spec
    const struct gpu_spec *spec;
    gpu_helper_fn *on_report;
    void *arg;
    struct event *timeout; // the first report is due, although the driver is not ready
    bool has_report;       // a report was passed on
};

/* The first report is passed on after notice_ms at the latest. */
void gpu_last_report_init(struct gpu_last_report *last, struct event_base *base, struct gpu_roster *roster,
    const struct gpu_spec *spec, int64_t notice_ms, gpu_helper_fn *on_report, void *arg);
void gpu_last_report_clear(struct gpu_last_report *last);

/* Takes the report except for its GPUs, which the caller keeps. Nothing is passed on. */
void gpu_last_report_take(struct gpu_last_report *last, struct gpu_report *fresh);

/* Passes it on, with all GPUs of the roster. */
void gpu_last_report_pass(struct gpu_last_report *last);
/* No GPU responds, for this reason. */
void gpu_last_report_pass_lost(struct gpu_last_report *last, const char *why);
/* GPUs were released or opened again. */
void gpu_last_report_pass_released(struct gpu_last_report *last);
