/* SPDX-License-Identifier: MIT */
/* Parses the output of `mgpu journal export`: first {"schema": "mgpu-journal/v1", ...}, then one event per
 * line, in order. */
#pragma once

#include "base/error.h"
#include "job/event.h"

#define JOURNAL_SCHEMA "mgpu-journal/v1"

/* The first line. -EINVAL if it is not a journal of this version. */
int journal_head(const char *line, struct error *err);

/* Any other line. The caller clears *ret with job_event_clear(), also after a failure. `ret_command_hash` as
 * in json_journal.h. */
int journal_line(const char *line, struct job_event *ret, uint64_t *ret_command_hash, struct error *err);
