/* SPDX-License-Identifier: MIT */
/* Tables in the format of Slurm's accounting: fields with a width each, and a line of dashes below their
 * names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define REPORT_FIELDS_MAX 32U

struct report_field {
    const char *name;   // of --format; it may be abbreviated
    const char *header; // NULL: `name`
    int width;          // left-aligned if negative
};

struct report {
    const struct report_field *fields; // terminated by a NULL name
    struct {
        size_t field;
        int width;
    } cells[REPORT_FIELDS_MAX];
    size_t count;
    bool is_headless, is_parsable, has_last_delimiter;
};

/* Parses "account%20,user"; the number after % replaces the width of the field. -EINVAL: an unknown field. */
int report_read(struct report *report, const char *format, struct error *err);

void report_print_head(const struct report *report);

/* `texts` has one for each field, in their order; NULL: empty. */
void report_print_row(const struct report *report, const char *const *texts);

/* The names of all fields, four on a line. */
void report_print_names(const struct report_field *fields);

/* A value in a line whose fields have their own names; terminated by a NULL name. */
struct report_value {
    const char *name, *text;
};

/* One line of the fields in `format`, "account%20,user"; `values` NULL: the header. An unknown field is
 * empty. */
void report_print_values(
    const char *format, const struct report_value *values, bool is_parsable, bool has_last_delimiter);
