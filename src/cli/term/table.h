/* SPDX-License-Identifier: MIT */
/* A table of text: no borders, two blanks between columns, fitted to the screen when that has a width. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/term/screen.h"

struct table_column {
    const char *header;
    bool is_right;   // numbers
    unsigned shrink; // 0: always whole; 1: cut first when the screen is narrow, 2: next, ...
};

struct table;

/* Copies the columns. */
struct table *table_new(const struct table_column *columns, size_t count);

/* Fills the next cell, row by row, with text that is safe to print and is taken over. */
void table_add(struct table *table, char *text, enum color color);

/* Where all columns do not fit even when they are cut, the last ones are left out instead of wrapped. */
void table_may_drop(struct table *table);

/* Rows that are not complete are left out. */
void table_print(const struct table *table, const struct screen *screen, bool has_header, FILE *out);

void table_free(struct table *table);
void table_freep(struct table **table);
