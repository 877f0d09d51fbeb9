/* SPDX-License-Identifier: MIT */
/* Messages about a job to the node of one rank. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* True if every node of the job has an address that the others can reach; else *ret_node is one that has
 * none. */
bool core_can_meet(const struct core *core, const struct job *job, const char **ret_node);
/* False: its spec is not in memory and was requested from the store. */
bool core_send_launch(struct core *core, struct core_entry *entry, uint32_t rank, uint32_t link);
/* PREPARE for the next attempt of a waiting job, with these GPUs; results as for core_send_launch(). */
bool core_send_prepare(
    struct core *core, struct core_entry *entry, const struct record_list *gpus, uint32_t link);
void core_send_stop(struct core *core, const struct core_entry *entry, uint32_t rank, uint32_t link);
/* PARK of this rank, with the job's latest number; `bytes_max`: of GPU memory. */
void core_send_park(struct core *core, const struct job *job, uint32_t rank, enum park_action action,
    uint64_t bytes_max, uint32_t link);
void core_send_update(struct core *core, const struct job *job, uint32_t rank, uint32_t link);
