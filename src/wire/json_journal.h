/* SPDX-License-Identifier: MIT */
/* An event as the journal has it: with all that another scheduler needs to decide the same (docs/journal.md).
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "job/event.h"

/* `stem`: of a submitted job, what it runs as a number; else 0. Users and groups are numbers here. The caller
 * owns the result. */
json_t *json_journal_write(const struct job_event *event, uint64_t stem);

/* The same the other way, as far as a replay needs it; a key that is not there is 0 or NULL. The caller
 * clears *ret by job_event_clear(), also after -EINVAL and the like. */
int json_journal_read(json_t *object, struct job_event *ret, uint64_t *ret_stem, struct error *err);
