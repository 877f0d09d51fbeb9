/* SPDX-License-Identifier: MIT */
/* Lists of objects as tables, CSV or JSON; which columns there are is a table of the caller. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/term/screen.h"
#include "cli/term/time_text.h"

#define LIST_COLUMNS_MAX 64

/* What a column needs to know of the reader. */
struct view {
    const struct screen *screen;
    enum time_style times;
    int64_t now_ms;
};

struct list_column {
    const char *name; // for -o
    const char *header;
    const char *help;
    const char *field; // JSON member that CSV and sorting use; NULL: the rendered text
    bool is_right;
    unsigned shrink; // as in table.h
    /* Text safe to print, for the caller to free; may set a colour. NULL: the field as it is. */
    char *(*render)(const struct view *view, const json_t *row, enum color *color);
    /* The value that CSV and sorting use where no one member has it: seconds, bytes or a fraction; "" when it
     * is not known. NULL: `field`. */
    char *(*bare)(const json_t *row);
};

struct list_kind {
    const char *member;                // of the answer, that holds the rows: "jobs"
    const struct list_column *columns; // ended by a NULL name
    const char *normal, *wide;         // names of the columns shown without -o
};

/* True when the choice is `-o help`, which has then been answered. */
bool list_print_help(const struct list_choice *choice, const struct list_kind *kind, FILE *out);

/* Refuses unknown columns in -o and --sort before anything is asked of the server. */
int list_check(const struct list_choice *choice, const struct list_kind *kind, struct error *err);

/* Prints the rows of `answer` as chosen; the order is that of --sort. */
int list_print(const struct call *call, const struct list_kind *kind, const struct screen *screen,
    json_t *answer, FILE *out, struct error *err);

/* How every verb with a list begins: 1 when `-o help` was answered and there is nothing left to do, 0, or the
 * error of list_check. */
int list_begin(const struct call *call, const struct list_kind *kind, struct error *err);

/* A whole verb that shows what GET `path` answers: help on columns, checks, request and table. */
int list_run(struct call *call, const struct list_kind *kind, const char *path, struct error *err);

/* A cell with a time of the row, "-" when there is none. The caller frees it. */
char *list_moment(const struct view *view, const json_t *row, const char *name);

/* True when the output is for programs (json, jsonl, csv). */
bool list_is_machine(const struct call *call);
