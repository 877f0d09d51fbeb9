/* SPDX-License-Identifier: MIT */
/* Stops: who asks for one, and how long the job has. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

void core_stop_job(struct core *core, struct core_entry *entry, uint32_t uid, enum job_end reason);
/* How long a job has between SIGTERM and SIGKILL when nobody says otherwise. */
int64_t core_grace_ms(const struct core *core, const struct job_ask *ask);
/* The same for the stop that it is in. */
int64_t core_stop_grace_ms(const struct core *core, const struct job *job);
bool core_is_checkpointing(const struct job *job); // it saves its work, and goes on later
