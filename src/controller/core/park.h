/* SPDX-License-Identifier: MIT */
/* Parked jobs (job/park.h): which jobs can be parked, and requests by the controller itself. */
#pragma once

#include "controller/core/core.h"
#include "job/park.h"
#include "job/park_refusals.h"

struct core_entry;

/* 0 if this running job, and its node, can be parked now; else -EINVAL or -EALREADY with the reason. */
int core_can_park(const struct core *core, const struct job *job, struct error *err);
/* The same for a parked job that is to return. */
int core_can_return(const struct core *core, const struct job *job, struct error *err);

/* Parks a running job without a user's request; it returns by itself. False if that is not possible. */
bool core_park_job(struct core *core, struct core_entry *entry, enum park_cause cause);

/* The same by the scheduler's own rule, for this job; 0: for none. */
bool core_park_for(struct core *core, struct core_entry *entry, enum park_cause cause, uint64_t guest);

/* The job that is parked, or about to be, for this one by the scheduler's own rule; 0: none. */
uint64_t core_park_host(const struct core *core, uint64_t guest);

/* Bytes of GPU memory that this node keeps for parked jobs. */
uint64_t core_park_kept(const struct core *core, const char *name);

/* Bytes of GPU memory that this node may save for this job, beside those that are parked and those that are
 * being saved; 0: none is left. */
uint64_t core_park_room(const struct core *core, const char *name, uint64_t job);

/* --- by the scheduler's own rule (sched/sched_guest.c) --- */

struct core_park_rule {
    struct park_refusals refusals; // stems are results of core_command_hash()
};

/* True if the scheduler may park this job, which waits or runs, by its own rule, as far as is known. */
bool core_may_park(const struct core *core, const struct core_entry *entry);

/* True while jobs with the command of this one are not parked, because one has refused, or was lost. */
bool core_has_refused(const struct core *core, const struct job *job);

/* True if this waiting job may start on GPUs that are owed to a parked job, and start again, once, if it
 * still runs when they are due. */
bool core_may_borrow(const struct core *core, const struct core_entry *entry);

#define CORE_PARK_REFUSAL "park_refusal" // the kind of its rows
#define PARK_REFUSAL_KEY  24

const char *core_park_refusal_key(uint64_t command_hash, char key[PARK_REFUSAL_KEY]);
void core_remove_park_refusal(struct core *core, uint64_t command_hash); // the row only

/* A test of parking has passed: commands that refused are asked again. */
void core_forget_park_refusals(struct core *core);

/* Why the scheduler does not park this running job by its own rule; NULL: it may, or is not told to. The
 * caller frees it. */
char *core_why_not_parked(const struct core *core, const struct core_entry *entry);
