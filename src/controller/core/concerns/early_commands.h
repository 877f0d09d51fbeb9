/* SPDX-License-Identifier: MIT */
/*
 * Data about commands that run on GPUs: how long their latest jobs ran before they used one, which is the
 * time that an early start saves. A part of the concern `early`.
 */
#pragma once

#include "controller/core/core.h"

struct core_entry;

#define EARLY_COMMAND_KIND "early_command" // of the rows of the store
#define EARLY_WORTH_MS     2000            // minimum that an unrequested early start must save

/* True if the jobs of any command start early without a request. */
bool early_commands_has_late(const struct core *core);

/* True if this job does: each of the latest runs of its user and command that were measured ran longer than
 * EARLY_WORTH_MS before it used a GPU, and none that was started so failed before it had any. */
bool early_commands_is_late(const struct core *core, const struct job *job);

/* Learns from the last event that was applied to the job. */
void early_commands_note(struct core *core, struct core_entry *entry, const struct job_event *event);
/* For a loaded job: true if it runs without its GPUs, and did not request that. */
void early_commands_note_start(struct core_entry *entry);

/* For the concern's own hooks. */
int early_commands_load(
    struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err);
void early_commands_init(struct core *core);
void early_commands_free(struct core *core);
