/* SPDX-License-Identifier: MIT */
/* Command line options as a table: parsing, help text, "did you mean" and completion use the same rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define OPTIONS_UNKNOWN 1U // the kind of the error about an option that is in no table

struct option_row {
    char letter;          // 'g' for -g, 0 if there is no short form
    const char *name;     // "gpus" for --gpus
    const char *argument; // "N" in the help; NULL: a flag without argument; "[N]": optional, and must be
                          // joined (-w5, --watch=5)
    const char *help;     // one line; NULL: an alias of another row, not shown in the help
    /* Called for each occurrence; `value` is NULL for flags and for an omitted value. */
    int (*set)(void *target, const char *value, struct error *err);
    const char *preset; // default value as text; NULL: none, or not constant
    /* Used instead of `set` when many rows share one function; `key` tells them apart. */
    int (*set_key)(void *target, const struct option_row *row, const char *value, struct error *err);
    const char *key;
    /* Of the kinds of base/option_values.h. */
    size_t member; // where the value is stored
    bool is_inner;
    int64_t least, most;
};

/* An option of other programs that users type from habit. */
struct option_meaning {
    const char *name;    // "job-name" for --job-name, one letter for -w
    const char *needs;   // a long option; without it in the tables the meaning does not apply
    const char *meaning; // a hint that names the equivalent here
};

/* From now on, errors in this process name an entry of this table in preference to the nearest spelling. The
 * last row has name NULL. The table is not copied. */
void options_know(const struct option_meaning *meanings);

/*
 * Sets each row that has a preset, by the same function and from the same text that the help shows. The
 * defaults of a program that calls this before options_parse() are therefore those it documents.
 */
int options_preset(const struct option_row *const *tables, void *target, struct error *err);

/* Called for each option that was accepted; `value` is NULL for a flag. */
typedef void option_seen_fn(void *target, const struct option_row *row, const char *value);

/*
 * Parses options from argv[1..] in order. Stops at "--" (which is skipped) or, with `stop_at_operand`, at the
 * first operand; otherwise operands and options may be mixed, and operands are moved to the end of argv.
 * `tables` is terminated by NULL; the last row of each table has name NULL. *ret_operands is the index of the
 * first operand. Accepts -gN, -g N, --gpus=N, --gpus N, joined flags (-qv) and unambiguous abbreviations of
 * long names.
 */
int options_parse(int argc, char **argv, const struct option_row *const *tables, void *target,
    bool stop_at_operand, int *ret_operands, struct error *err);

/* The same; calls `seen` (may be NULL) for each option. */
int options_parse_seen(int argc, char **argv, const struct option_row *const *tables, void *target,
    option_seen_fn *seen, bool stop_at_operand, int *ret_operands, struct error *err);

/* The row with that name, the only one that begins with it, or the one with that letter; NULL if there is
 * none. */
const struct option_row *options_find(
    const struct option_row *const *tables, const char *name, size_t length);
const struct option_row *options_find_letter(const struct option_row *const *tables, char letter);

/* Sets one option of `target` as options_parse() does. */
int options_set(void *target, const struct option_row *row, const char *value, struct error *err);

/* True if these are two names of the same option. */
bool options_are_same(const struct option_row *a, const struct option_row *b);

/* Help lines "  -g, --gpus N       text". */
void options_print(const struct option_row *table, FILE *out);

/* Prints text of a help page where `column` columns of the line are taken, and ends the line. Lines of more
 * than HELP_WIDTH columns are wrapped, and continue with an indent of `indent` columns, or that of the line
 * itself. */
#define HELP_WIDTH 80
void help_text_print(const char *text, size_t column, size_t indent, FILE *out);

/* The same for several tables, with all texts in one column; the last is followed by NULL. */
void options_print_all(const struct option_row *const *tables, FILE *out);
