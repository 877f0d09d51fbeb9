/* SPDX-License-Identifier: MIT */
/* A text table: no borders, two blanks between columns, fitted to the screen if it has a width. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/term/screen.h"

struct table_column {
    const char *header;
    bool is_right;   // right-aligned, for numbers
    unsigned shrink; // 0: never cut; 1: cut first on a narrow screen, 2: next, ...
};

struct table;

/* Copies the columns. */
struct table *table_new(const struct table_column *columns, size_t count);

/* Sets the next cell, row by row; takes ownership of the text, which must be safe to print. */
void table_add(struct table *table, char *text, enum color color);

/* If the columns do not fit, drops the last ones instead of cutting the others short. */
void table_may_drop(struct table *table);

/* If the columns do not fit even when cut, drops the last ones instead of wrapping. */
void table_must_fit(struct table *table);

/* True if all columns fit the screen, cut as far as allowed. */
bool table_fits(const struct table *table, const struct screen *screen, bool has_header);

/* Incomplete rows are omitted. Returns how many columns were printed, counted from the first. */
size_t table_print(const struct table *table, const struct screen *screen, bool has_header, FILE *out);

void table_free(struct table *table);
void table_freep(struct table **table);
