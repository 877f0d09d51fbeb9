/* SPDX-License-Identifier: MIT */
/*
 * An element of an array that is committed behind another one of it, on the same GPUs, before that one has
 * ended (docs/decisions/0053-elements-and-stretches.md): it has its attempt, and its node may start it, but
 * its GPUs are booked for the one before it. It has them from EVENT_INHERITS on, which is in the transaction
 * in which that one leaves them.
 */
#pragma once

#include <stdbool.h>

#include "job/state.h"

struct job;
struct job_event;

/* True while its GPUs are booked for the element before it. */
bool job_is_behind(const struct job *job);

/* True until it begins, or has the GPUs. */
bool job_waits_behind(const struct job *job);

/* The state that users see: whoever waits for the GPUs of another job is queued, whatever its node has
 * prepared. */
enum job_state job_shown_state(const struct job *job);

/* The parts of job_apply() for EVENT_ALLOCATED with `behind`, and for EVENT_INHERITS: what is wrong with the
 * event, or NULL; and its fold. */
const char *job_behind_fault(const struct job *job, const struct job_event *event);
void job_behind_apply(struct job *job, const struct job_event *event);
