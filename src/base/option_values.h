/* SPDX-License-Identifier: MIT */
/* Kinds of options whose value is stored in one member of a struct: a row names the kind and the member and
 * needs no function. */
#pragma once

#include "base/options.h"

/*
 * The end of a row: { 0, "run-dir", "DIR", "...", OPTION_VALUE(path, struct my_options, run_dir) }. The
 * member belongs to the target or, with OPTION_INNER, to the struct that the target's first member points to.
 */
#define OPTION_VALUE(kind, type, member_) .set_key = option_set_##kind, .member = offsetof(type, member_)
#define OPTION_INNER(kind, type, member_) OPTION_VALUE(kind, type, member_), .is_inner = true
#define OPTION_RANGE(least_, most_)       .least = (least_), .most = (most_) // follows `integer` and `count`
#define OPTION_ZERO(word)                 .key = (word) // a word for 0; follows `duration` and `size`

typedef int option_kind_fn(void *target, const struct option_row *row, const char *value, struct error *err);

option_kind_fn option_set_flag;     // bool; in a file, true or false
option_kind_fn option_set_on_off;   // bool: "on" or "off"
option_kind_fn option_set_word;     // const char *, borrowed
option_kind_fn option_set_text;     // const char *, not empty, borrowed
option_kind_fn option_set_copy;     // char *
option_kind_fn option_set_path;     // char *: made absolute
option_kind_fn option_set_library;  // char *: a path; NULL for "auto"
option_kind_fn option_set_integer;  // int64_t in the row's range
option_kind_fn option_set_count;    // uint32_t in the row's range
option_kind_fn option_set_duration; // int64_t, milliseconds
option_kind_fn option_set_expiry;   // int64_t, milliseconds: at least one second
option_kind_fn option_set_size;     // uint64_t, bytes

struct option_name {
    char text[64];
};

/* For functions of other kinds, which a file can define with such a name: where the row's value is stored,
 * and the option in errors: "-u", else "--user". */
void *option_member(void *target, const struct option_row *row);
struct option_name option_name_of(const struct option_row *row);

/* The parsers of these kinds, for setters that do more; `what` names the option in errors: "--run-dir". */
int option_text(const char *what, const char *value, const char **ret, struct error *err);
int option_on_off(const char *what, const char *value, bool *ret, struct error *err);
int option_path(const char *what, const char *value, char **field, struct error *err);
