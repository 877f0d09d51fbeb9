/* SPDX-License-Identifier: MIT */
/* How a job is shown: the columns of `ps`, and the pieces that other verbs show too. */
#pragma once

#include "cli/list.h"

extern const struct list_column job_columns[];

/* "gpu1:0-3", "gpu1" without GPUs, "-" before it has a place. The caller frees it. */
char *job_where(const json_t *job);

/* How it ended, in words: "exit 1", "killed by signal 9 (KILL)", "cancelled by ana"; NULL while it goes on.
 * The caller frees it. */
char *job_outcome(const json_t *job);

bool job_is_done(const json_t *job);

enum color job_color(const json_t *job);
const char *job_glyph(const struct screen *screen, const json_t *job);
