/* SPDX-License-Identifier: MIT */
/* The scheduler's own rule of parking in a case: jobs are parked when it says so, and books of the checker's
 * own say whether each is parked for no longer than it is promised. */
#pragma once

#include "lab/sim/check_world.h"

/* If the case has the rule: sets it and the callbacks. */
void bound_init(struct world *world, struct sched_callbacks *callbacks);
void bound_clear(struct world *world);

/* A preemption of this attempt has ended: true if it was to be parked, and now is or has refused. */
bool bound_stop(struct world *world, struct case_attempt *attempt);
/* It is preempted because its GPUs are due to a parked job. An error of the world if that happens a second
 * time, or so soon that it should not have had them. */
void bound_reclaimed(struct world *world, const struct case_attempt *attempt);
/* It has its GPUs again. */
void bound_return(struct world *world, size_t job);
/* It begins from the beginning, or is cancelled. */
void bound_forget(struct world *world, size_t job);
/* What is parked on this node (WORLD_ALL_NODES: on any) may stay longer: the node takes no jobs, or GPUs are
 * reserved. */
#define WORLD_ALL_NODES UINT32_MAX
void bound_excuse(struct world *world, uint32_t node);
/* An error of the world if a job is parked for longer than promised. */
void bound_check(struct world *world);
