/* SPDX-License-Identifier: MIT */
/* Ends of attempts, and reports of nodes about attempts. */
#pragma once

#include "controller/core/core.h"

/* Why the result of an attempt is unknown. */
#define NO_RECORD "its node has no record of it any more"

struct core_entry;

/* Begins the job's next attempt, on this allocation. `is_early`: its GPUs are not free yet, and it waits for
 * them while it runs. */
void core_allocate(
    struct core *core, struct core_entry *entry, const struct allocation *allocation, bool is_early);
/* The current attempt runs, or has run. Does nothing if that is known. The texts are copied; `text` may be
 * NULL. */
void core_begin_attempt(struct core *core, struct core_entry *entry, const char *log_path, const char *text);
/* Ends the attempt with `event`; if a driver error made it fail, that becomes its end. */
void core_close_attempt(struct core *core, struct core_entry *entry, struct job_event *event);
/* Ends an attempt whose end no node has reported: `text` says why it must have ended. */
void core_end_attempt(struct core *core, struct core_entry *entry, enum job_end end, const char *text);
/* Requeues the job: the attempt provably never ran. The delay doubles with each time, and after some the job
 * ends. */
void core_give_back(struct core *core, struct core_entry *entry, const char *text);
/* The same for an attempt that its node was asked to give back (concerns/behind.c). */
void core_give_back_recalled(struct core *core, struct core_entry *entry, const char *text);
/* The same if the caller delays the next attempt, and limits their number. */
void core_give_back_paced(struct core *core, struct core_entry *entry, const char *text);

/* The rank of its current attempt. */
static inline struct spool_id core_attempt_id(const struct job *job, uint32_t rank)
{
    return (struct spool_id){ .job = job->id, .attempt = job->attempt, .rank = rank };
}

/* The token of its next attempt: the one with which a node prepares it, or a new one. */
uint64_t core_next_token(const struct core *core, const struct core_entry *entry);

/* The lease of its next attempt (docs/node-loss.md); 0: none. */
int64_t core_node_lease_ms(const struct core *core, const struct job *job);

/* The GPUs of an allocation as a job has them (struct gpu_grant). */
void core_write_grants(const struct core *core, const struct allocation *allocation, struct record_list *ret);

/* The job, if a node's report about this attempt concerns the current one and can still change it; else
 * NULL. */
struct core_entry *core_find_current(
    const struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token);
/* True if an attempt that its node does not know may have run and ended since the copy was made from which
 * the store was restored. False for one that this mgpud has allocated, whose end it would have recorded. */
bool core_may_be_over(const struct core *core, const struct core_entry *entry, const struct core_node *node);
/* Allows the agent to remove this attempt once the reason is durable. */
void core_forget_stated(
    struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token);
