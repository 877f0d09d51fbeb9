/* SPDX-License-Identifier: MIT */
/* Command line options as a table: parsing, help text, "did you mean" and completion come from the same rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct option_row {
    char letter;          // 'g' for -g, 0 when there is no short form
    const char *name;     // "gpus" for --gpus
    const char *argument; // "N" in the help; NULL: a flag without argument; "[N]": may be left out, and is
                          // given joined only (-w5, --watch=5)
    const char *help;     // one line; NULL: another name of a row, left out of the help
    /* Called for each occurrence; `value` is NULL for flags and for
     * a value left out. */
    int (*set)(void *target, const char *value, struct error *err);
    const char
        *preset; // the value that it has when none is given, as text; NULL: none, or not always the same
    /* Instead of `set`: many rows with one function, told apart by `key`. */
    int (*set_key)(void *target, const struct option_row *row, const char *value, struct error *err);
    const char *key;
    /* Of the kinds of base/option_values.h. */
    size_t member; // where the value goes
    bool is_inner;
    int64_t least, most;
};

/*
 * Sets each row that has a preset to it, by the same function and from the same text that the help shows. So
 * a program that calls this before it reads its options has the defaults that it shows, and no others.
 */
int options_preset(const struct option_row *const *tables, void *target, struct error *err);

/* Called for each option that was read and taken; `value` is NULL for a flag. */
typedef void option_seen_fn(void *target, const struct option_row *row, const char *value);

/*
 * Reads options from argv[1..] in the order they stand, stopping at "--" (passed over) or, with
 * `stop_at_operand`, at the first word that is no option; without it operands and options may mix and the
 * operands are moved to the end of argv. Several tables may be given, ended by NULL; the last row of each
 * table has name NULL. *ret_operands is the index of the first operand. Understands -gN, -g N, --gpus=N,
 * --gpus N, joined flags (-qv) and unambiguous beginnings of long names.
 */
int options_parse(int argc, char **argv, const struct option_row *const *tables, void *target,
    bool stop_at_operand, int *ret_operands, struct error *err);

/* The same, telling `seen` (or NULL) what was taken. */
int options_parse_seen(int argc, char **argv, const struct option_row *const *tables, void *target,
    option_seen_fn *seen, bool stop_at_operand, int *ret_operands, struct error *err);

/* The row of that name or the only one that begins so, or of that letter; NULL when there is none. */
const struct option_row *options_find(
    const struct option_row *const *tables, const char *name, size_t length);
const struct option_row *options_find_letter(const struct option_row *const *tables, char letter);

/* Sets one option of `target`, as options_parse() does when it finds the row. */
int options_set(void *target, const struct option_row *row, const char *value, struct error *err);

/* Are these two names of one option? */
bool options_are_same(const struct option_row *a, const struct option_row *b);

/* Help lines "  -g, --gpus N       text". */
void options_print(const struct option_row *table, FILE *out);
