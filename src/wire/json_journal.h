/* SPDX-License-Identifier: MIT */
/* Events in the journal's form: with all data that another scheduler needs to make the same decisions
 * (docs/journal.md). */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "job/event.h"

/* `command_hash`: of a submitted job ("stem" in the journal, a name that its readers know); else 0. Users and
 * groups are numbers. The caller owns the result. */
json_t *json_journal_write(const struct job_event *event, uint64_t command_hash);

/* Parses such an event, as far as a replay needs it; missing keys are 0 or NULL. The caller clears *ret with
 * job_event_clear(), also after an error. */
int json_journal_read(json_t *object, struct job_event *ret, uint64_t *ret_command_hash, struct error *err);
