/* SPDX-License-Identifier: MIT */
/* Ended jobs, and totals over them, as tables: the output of `mgpu history`. */
#pragma once

#include "cli/options/list.h"

/* The columns that `ps` does not have. */
extern const struct list_kind history_own;

/* The list of jobs: its own columns and those of `ps`. */
const struct list_kind *history_jobs(void);

/* The list of totals by "user", "group", "day" or "node"; NULL for other names. */
const struct list_kind *history_sums(const char *by);

/* The list of forecasts of starts, by the length of the forecast wait. */
const struct list_kind *history_forecasts(void);

/* Sets the length of each row's bar relative to the others. For display only, not for json. */
void history_measure_bars(json_t *sums);
