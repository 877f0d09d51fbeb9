/* SPDX-License-Identifier: MIT */
/* Parking in a case: the model of parking.h answers the scheduler, and books of the checker's own say whether
 * what was parked, and where it returned, could be. */
#pragma once

#include "lab/sim/check_world.h"

void park_init(struct world *world);
void park_clear(struct world *world);

/* The callback: may this job be parked now? */
bool park_may(void *world, uint64_t id);
/* Parks what is preempted, with its work; an error of the world if it should not have been parked. */
void park_now(struct world *world, struct case_attempt *attempt);
/* The same without telling the scheduler. Returns how much of its work is done, ms. */
int64_t park_take_off(struct world *world, struct case_attempt *attempt);
/* It starts with this allocation: an error of the world if it is parked elsewhere. */
void park_return(struct world *world, size_t job, const struct allocation *allocation);
/* It is cancelled, or its contents are lost. */
void park_forget(struct world *world, size_t job);
/* What is parked on this node is lost: it starts again from the beginning. */
void park_lose(struct world *world, uint32_t node);
