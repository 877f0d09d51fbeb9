/* SPDX-License-Identifier: MIT */
/* Jobs on their way to the scheduler. */
#pragma once

#include "controller/core/core.h"

struct core_entry;
struct description;

/* Hands a queued job to the scheduler; `is_known`: it has it already, and it has changed. */
void core_enqueue(struct core *core, struct core_entry *entry, const struct core_facts *facts, bool is_known);
/* The same for a new job that has been described; frees what the description holds. */
void core_enqueue_new(struct core *core, struct description *description);
/* It holds resources already, at a start. */
void core_resume(struct core *core, struct core_entry *entry);
/* It failed: it waits for the time of its next try. */
void core_await_retry(struct core *core, const struct job *job);
