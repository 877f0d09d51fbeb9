/* SPDX-License-Identifier: MIT */
/* The only functions that change the core's state. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* Applies an event to its job, adds both to the open batch and calls the concerns; `spec` only with
 * EVENT_SUBMITTED. Aborts on an event that the transition table refuses: callers check first. */
void core_change(
    struct core *core, struct core_entry *entry, struct job_event *event, struct spec_bytes *spec);

/* Records a change of the cluster that has already been made. */
void core_change_cluster(struct core *core, const struct cluster_change *change);

/* The job is done: it stays in memory until enough other jobs have ended. */
void core_note_done(struct core *core, struct core_entry *entry);
/* Removes the jobs from memory that ended first, beyond the limit; they remain in the store. */
void core_trim_done(struct core *core);

void core_activate(
    struct core *core, struct core_entry *entry); // adds it to the list of jobs that hold resources
