/* SPDX-License-Identifier: MIT */
/* Kinds of options whose value goes into one member of a struct: a row names the kind and the member, and
 * needs no function. */
#pragma once

#include "base/options.h"

/*
 * The end of a row: { 0, "run-dir", "DIR", "...", OPTION_VALUE(path, struct my_options, run_dir) }. The
 * member is one of the target, or with OPTION_INNER of the struct that the target's first member points to.
 */
#define OPTION_VALUE(kind, type, member_) .set_key = option_set_##kind, .member = offsetof(type, member_)
#define OPTION_INNER(kind, type, member_) OPTION_VALUE(kind, type, member_), .is_inner = true
#define OPTION_RANGE(least_, most_)       .least = (least_), .most = (most_) // behind `integer` and `count`

typedef int option_kind_fn(void *target, const struct option_row *row, const char *value, struct error *err);

option_kind_fn option_set_flag;    // bool; a value of a file is true or false
option_kind_fn option_set_word;    // const char *: as it is given, borrowed
option_kind_fn option_set_text;    // const char *: any but an empty one, borrowed
option_kind_fn option_set_copy;    // char *
option_kind_fn option_set_path;    // char *: made absolute
option_kind_fn option_set_library; // char *: a path; NULL for "auto"
option_kind_fn option_set_integer; // int64_t in the row's range
option_kind_fn option_set_count;   // uint32_t in the row's range
option_kind_fn option_set_expiry;  // int64_t, milliseconds: a second at least

/* Where the value of the row goes: for functions of further kinds. */
void *option_member(void *target, const struct option_row *row);

/* As the kinds do, for setters that do more; `what` names the option in errors: "--run-dir". */
int option_text(const char *what, const char *value, const char **ret, struct error *err);
int option_path(const char *what, const char *value, char **field, struct error *err);
