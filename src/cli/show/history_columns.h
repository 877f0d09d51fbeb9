/* SPDX-License-Identifier: MIT */
/* Jobs that ended, and sums over them, as tables: what `mgpu history` shows. */
#pragma once

#include "cli/options/list.h"

/* The columns that `ps` has not. */
extern const struct list_kind history_own;

/* The list of jobs: columns of its own and those of `ps`. */
const struct list_kind *history_jobs(void);

/* The list of sums "user", "group", "day" or "node"; NULL when there is no such one. */
const struct list_kind *history_sums(const char *by);

/* Tells each row of `sums` how long its bar is beside the others. For people's eyes: not for json. */
void history_measure_bars(json_t *sums);

/* GPU-hours of a member in seconds, "-" when it is not known. The caller frees it. */
char *history_hours(const json_t *row, const char *member);
