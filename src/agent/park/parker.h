/* SPDX-License-Identifier: MIT */
/* Parks and restores attempts: one helper process for each order (agent/park/helper.h). */
#pragma once

#include <event2/event.h>

#include "agent/gpu/access.h"
#include "agent/gpu/check.h"
#include "agent/gpu/chores.h"
#include "agent/gpu/usage_watch.h"
#include "agent/launch/launcher.h"
#include "wire/message.h"

struct parker;

typedef void park_report_fn(void *arg, const struct message_park_result *result);

struct parker_parts {
    struct event_base *base;
    struct launcher *launcher;
    struct gpu_check *check;
    struct gpu_access *access; // NULL: not root
    struct gpu_chores *chores; // NULL: none are requested
    struct usage_watch *usage; // NULL: nothing is measured
    const char *library;       // CUDA's driver library; NULL: libcuda.so.1
    park_report_fn *report;    // called with `arg`
    void *arg;
};

/* The parts are borrowed. */
struct parker *parker_new(const struct parker_parts *parts);
/* Helpers continue; the next agent finds their results. NULL is allowed. */
void parker_free(struct parker *parker);

/* Executes the order, whose result is reported once it is known. Idempotent. */
void parker_order(struct parker *parker, const struct message_park *order);

/* Adds the orders in progress to the spool's data about the attempt. */
void parker_recall(const struct parker *parker, const struct spool_id *id, struct known_attempt *known);

/* A report of the GPUs (struct gpu_state, their processes with owners), which the check has processed. */
void parker_note_gpus(struct parker *parker, const struct record_list *gpus);
