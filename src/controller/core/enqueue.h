/* SPDX-License-Identifier: MIT */
/* Jobs on their way to the scheduler. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* Hands a queued job to the scheduler; `is_known`: it has it already, and it has changed. */
void core_enqueue(struct core *core, struct core_entry *entry, const struct core_facts *facts, bool is_known);
/* It holds resources already, at a start. */
void core_resume(struct core *core, struct core_entry *entry);
/* It failed: it waits for the time of its next try. */
void core_await_retry(struct core *core, const struct job *job);
