/* SPDX-License-Identifier: MIT */
/* The columns of sinfo. A line shows {"partition": one of the API, "nodes": [nodes of it]}. */
#pragma once

#include "compat/slurm/table.h"

/* Terminated by a NULL name. */
extern const struct slurm_column sinfo_columns[];

/* "%all" of -o: all letters. */
extern const char sinfo_format_all[];

/* True if the node, as one of the partition, may share the line: it equals the nodes there in all columns of
 * the table. */
bool sinfo_is_alike(
    const struct slurm_table *table, const json_t *group, const json_t *partition, const json_t *node);
