/* SPDX-License-Identifier: MIT */
/* Lists of Slurm: which columns, how wide, in which order. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/slurm/fields.h"

struct slurm_column {
    char letter;      // of -o, or 0
    const char *name; // of -O, and of sacct -o
    const char *header;
    slurm_text_fn *text;
    int width; // of sacct: the usual one, to the left when it is negative
};

/* One cell of a line, and the text before it. */
struct slurm_cell {
    char *before;
    const struct slurm_column *column; // NULL: text alone
    int width;                         // 0: as long as it is; negative: to the right
};

struct slurm_table {
    const struct slurm_column *columns; // ended by a NULL name
    struct slurm_cell *cells;
    size_t count;
    const char *sort; // letters, or NULL
    bool is_headless;
};

/* "%.18i %t", "%i|%T". -EINVAL for a letter that there is not. */
int slurm_table_read_letters(struct slurm_table *table, const char *format, struct error *err);

/* "JobID:20,State:.10". A name is found whatever its case. */
int slurm_table_read_names(struct slurm_table *table, const char *names, struct error *err);

void slurm_table_print(const struct slurm_table *table, json_t *jobs);

/* Of each job all columns by their names, under `member`. Returns 0. */
int slurm_table_json(const struct slurm_column *columns, const json_t *jobs, const char *member);

void slurm_table_clear(struct slurm_table *table);
