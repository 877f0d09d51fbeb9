/* SPDX-License-Identifier: MIT */
/* The end of an attempt, and what nodes say of attempts. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* The attempt is over, as `event` tells; the driver's error that made it fail becomes its end. */
void core_close_attempt(struct core *core, struct core_entry *entry, struct job_event *event);
/* Its attempt is over, which nobody has seen: `text` says how that is known. */
void core_end_attempt(struct core *core, struct core_entry *entry, enum job_end end, const char *text);
/* It is proven never to have run. */
void core_give_back(struct core *core, struct core_entry *entry, const char *text);

/* The part of its present attempt that has this rank. */
static inline struct spool_id core_attempt_id(const struct job *job, uint32_t rank)
{
    return (struct spool_id){ .job = job->id, .attempt = job->attempt, .rank = rank };
}

/* The job when what a node says of this attempt is about the present one and can still change it, else NULL.
 */
struct core_entry *core_find_current(
    const struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token);
/* The agent may drop this attempt as soon as what made it needless is durable. */
void core_forget_stated(
    struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token);
