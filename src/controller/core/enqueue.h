/* SPDX-License-Identifier: MIT */
/* Passes jobs to the scheduler. */
#pragma once

#include "controller/core/core.h"

struct core_entry;
struct description;

/* Passes a queued job to the scheduler; `is_known`: it has the job already, which has changed. */
void core_enqueue(struct core *core, struct core_entry *entry, const struct core_facts *facts, bool is_known);
/* The same for a new job that has been described; frees the contents of the description. */
void core_enqueue_new(struct core *core, struct description *description);
/* At a start: it already holds resources. */
void core_resume(struct core *core, struct core_entry *entry);
/* At a start: an element that is behind another waits for no pass. */
void core_enqueue_behind(struct core *core, struct core_entry *entry);
/* It is parked: passes the request for its return, held unless it may return now. */
void core_enqueue_parked(struct core *core, struct core_entry *entry, bool is_known);
/* It failed: it waits for its next attempt. */
void core_await_retry(struct core *core, const struct job *job);
