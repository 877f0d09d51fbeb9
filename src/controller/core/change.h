/* SPDX-License-Identifier: MIT */
/* The one way in which the core changes. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* Applies an event to its job, puts both into the open batch and tells the concerns; `spec` only with
 * EVENT_SUBMITTED. Aborts on an event that the transition table refuses: callers check first. */
void core_change(
    struct core *core, struct core_entry *entry, struct job_event *event, struct spec_bytes *spec);

/* The same for a change of the cluster, which was made already. */
void core_change_cluster(struct core *core, const struct cluster_change *change);

/* The job is done: it stays in memory until enough later ones have ended. */
void core_note_done(struct core *core, struct core_entry *entry);
/* Forgets the jobs that ended first, beyond the limit; the store still has them. */
void core_trim_done(struct core *core);

void core_activate(struct core *core, struct core_entry *entry); // into the list of jobs that hold resources
