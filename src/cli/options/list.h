/* SPDX-License-Identifier: MIT */
/* Lists of objects as tables, CSV or JSON; the caller has a table of columns. */
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
#define LIST_HOUR_S      3600.0 // unit of columns that show a member in seconds as hours

/* Display settings for columns. */
struct view {
    const struct screen *screen;
    enum time_style times;
    int64_t now_ms;
    bool is_verbose; // with the rules in numbers
};

/* The cell of a member of the row, safe to print; "-" if it is missing or null. The caller frees it. */
typedef char *list_form_fn(const struct view *view, const json_t *row, const char *name);
list_form_fn list_seconds; // a number of seconds: "1:30:00"
list_form_fn list_size;    // bytes: "1.5G"
list_form_fn list_hours;   // a number of seconds, as hours
list_form_fn list_time;    // a moment
list_form_fn list_moment;  // the same without seconds

struct list_column {
    const char *name; // for -o
    const char *header;
    const char *help;
    const char *field; // JSON member used by CSV and sorting; NULL: the rendered text
    bool is_right;
    unsigned shrink; // as in table.h
    /* Text that is safe to print, which the caller frees; may set a colour. NULL: the field, in its form. */
    char *(*render)(const struct view *view, const json_t *row, enum color *color);
    /* The value for CSV and sorting if no single member has it: seconds, bytes or a fraction; "" if unknown.
     * NULL: `field`. */
    char *(*bare)(const json_t *row);
    list_form_fn *form;  // of `field`; NULL: as it is
    double unit;         // the number in `field` is divided by it for CSV; 0: as it is
    bool is_hidden_void; // on a terminal, where no row has a value
    unsigned spare; // of the default columns, on a narrow screen: 0: kept; 1: omitted first, 2: next, ...
};

struct list_kind {
    const char *member;                // of the answer, containing the rows: "jobs"
    const struct list_column *columns; // terminated by a NULL name
    const char *normal, *wide;         // default columns, and those of the wide format
};

/* Handles `-o help`; true if that was chosen. */
bool list_print_help(const struct list_choice *choice, const struct list_kind *kind, FILE *out);

/* Rejects unknown columns in -o and --sort before a request is sent. */
int list_check(const struct list_choice *choice, const struct list_kind *kind, struct error *err);

/* Prints the rows of `answer` in the chosen format and order. */
int list_print(const struct call *call, const struct list_kind *kind, const struct screen *screen,
    json_t *answer, FILE *out, struct error *err);

/* The beginning of every verb with a list: 1 if `-o help` was handled and nothing is left to do, 0, or the
 * error of list_check. */
int list_begin(const struct call *call, const struct list_kind *kind, struct error *err);

/* A complete verb that lists the answer of GET `path`: help on columns, checks, request and table. */
int list_run(struct call *call, const struct list_kind *kind, const char *path, struct error *err);

/* The cell of a column in a row; the caller frees it. May set a colour. */
char *list_cell(
    const struct view *view, const struct list_column *column, const json_t *row, enum color *color);

/* True if the output is machine-readable (json, jsonl, csv). */
bool list_is_machine(const struct call *call);
