/* SPDX-License-Identifier: MIT */
/* Stops: who requested one, and the grace. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

void core_stop_job(struct core *core, struct core_entry *entry, uint32_t uid, enum job_end reason);
/* The time between SIGTERM and SIGKILL unless specified otherwise. */
int64_t core_grace_ms(const struct core *core, const struct job_ask *ask);
/* The same for the stop in progress. */
int64_t core_stop_grace_ms(const struct core *core, const struct job *job);
bool core_is_checkpointing(const struct job *job); // it saves its work and will be requeued
