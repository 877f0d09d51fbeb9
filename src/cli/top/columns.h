/* SPDX-License-Identifier: MIT */
/* The columns of jobs in `mgpu top`: those of `mgpu ps`, some of them shorter. */
#pragma once

#include "cli/options/list.h"

#define TOP_COLUMNS_MAX 24

/* The columns named in a list, unknown ones left out; how many. */
size_t top_columns_parse(const char *names, const struct list_column *columns[TOP_COLUMNS_MAX]);

/* The list with one more or one less name; or with a name moved by `by` places. The caller frees it. */
char *top_columns_toggle(const char *names, const char *name);
char *top_columns_move(const char *names, const char *name, int by);
