/* SPDX-License-Identifier: MIT */
/* What a job's agents are sent, to the node of one rank. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* Is there for each node of the job an address that the others can reach? False with a node that has none. */
bool core_can_meet(const struct core *core, const struct job *job, const char **ret_node);
/* False: its request is not in memory, and was asked for. */
bool core_send_launch(struct core *core, struct core_entry *entry, uint32_t rank, uint32_t link);
void core_send_stop(struct core *core, const struct core_entry *entry, uint32_t rank, uint32_t link);
void core_send_update(struct core *core, const struct job *job, uint32_t rank, uint32_t link);
