/* SPDX-License-Identifier: MIT */
/* Slurm's lists: columns, widths and order. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "compat/slurm/fields.h"

struct slurm_column {
    char letter;      // letter of -o, or 0
    const char *name; // name for -O, and for -o of sacct
    const char *header;
    slurm_text_fn *text;
    int width; // for sacct: the default, left-aligned if negative
};

/* A cell of a line, and the text before it. */
struct slurm_cell {
    char *before;
    const struct slurm_column *column; // NULL: only the text
    int width;                         // 0: unlimited; negative: right-aligned
};

struct slurm_table {
    const struct slurm_column *columns; // terminated by a NULL name
    struct slurm_cell *cells;
    size_t count;
    const char *sort; // letters, or NULL
    bool is_headless;
};

/* Parses "%.18i %t" or "%i|%T". -EINVAL for an unknown letter. */
int slurm_table_read_letters(struct slurm_table *table, const char *format, struct error *err);

/* Parses "JobID:20,State:.10". Names are case-insensitive. */
int slurm_table_read_names(struct slurm_table *table, const char *names, struct error *err);

/* True if one of the cells is the column with this name. */
bool slurm_table_has(const struct slurm_table *table, const char *name);

void slurm_table_print(const struct slurm_table *table, json_t *jobs);

void slurm_table_clear(struct slurm_table *table);
