/* SPDX-License-Identifier: MIT */
/* The columns of jobs in `mgpu top`: those of `mgpu ps`, some of them shortened. */
#pragma once

#include "cli/options/list.h"

#define TOP_COLUMNS_MAX 24

/* The columns in a list, skipping unknown ones; returns their number. */
size_t top_columns_parse(const char *names, const struct list_column *columns[TOP_COLUMNS_MAX]);

/* The list with a name added or removed; or with a name moved by `by` places. The caller frees it. */
char *top_columns_toggle(const char *names, const char *name);
char *top_columns_move(const char *names, const char *name, int by);
