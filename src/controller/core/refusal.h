/* SPDX-License-Identifier: MIT */
/* Failed starts, whose consequences depend on the class of their cause (job/start_failure.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"
#include "job/start_failure.h"

struct core;
struct core_entry;
struct job;

/* The class of a record of an attempt that never ran; from nodes with an older agent, it has no cause. */
enum start_class core_start_class(const struct launch_exit *record);

/*
 * The job's current attempt did not start on the node, and never ran; `text` is why. Requeues the job: for a
 * later time, or for other nodes. The nodes to avoid are not stored: after a restart of mgpud each may be
 * tried once more. False: the attempt must be ended, because it would fail everywhere.
 */
bool core_start_failed(struct core *core, struct core_entry *entry, const char *node, enum start_class class,
    uint32_t cause, const char *text);

/* The waiting job has avoided the nodes that refused it for `start_patience_ms`. If no other node is up, it
 * may be tried on any node again, and ends if it then fails.
 */
void core_readmit_nodes(struct core *core, struct core_entry *entry);

/* The job has started on its nodes: the common requirements of starts there are met again. */
void core_forget_trouble(struct core *core, const struct job *job);

void core_clear_troubles(struct core *core);
