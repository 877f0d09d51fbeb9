/* SPDX-License-Identifier: MIT */
/* The only functions that change the core's state. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

#define CORE_PATIENCE_MS    5  // for which a commit for which nobody waits may wait for other changes
#define START_PATIENCE_MS   25 // if it is of the start of an element
#define ELEMENT_PATIENCE_MS 50 // at most, if it is of elements that have others behind them

/* Applies an event to its job, adds both to the open batch and calls the concerns; `spec` only with
 * EVENT_SUBMITTED. Aborts on an event that the transition table refuses: callers check first. */
void core_change(
    struct core *core, struct core_entry *entry, struct job_event *event, struct spec_bytes *spec);

/* For how long the commit of this event, which has just been folded into the job, may wait for others; 0: it
 * follows the turn. */
int64_t core_patience_ms(
    const struct core *core, const struct core_entry *entry, const struct job_event *event);

/* Records a change of the cluster that has already been made. */
void core_change_cluster(struct core *core, const struct cluster_change *change);

/* The job is done: it stays in memory until enough other jobs have ended. */
void core_note_done(struct core *core, struct core_entry *entry);
/* Removes the jobs from memory that ended first, beyond the limit; they remain in the store. */
void core_trim_done(struct core *core);

void core_activate(
    struct core *core, struct core_entry *entry); // adds it to the list of jobs that hold resources
