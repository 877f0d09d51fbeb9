/* SPDX-License-Identifier: MIT */
/* Rows of options whose value goes into a member of the verb's options as it is given: flags, and words of
 * the user's own such as names and reasons. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"

/* The end of an option_row: { 'f', "force", NULL, "...", OPTION_FLAG(struct my_options, is_forced) } */
#define OPTION_FLAG(type, member_) .set_key = option_set_flag, .member = offsetof(type, member_) // bool
#define OPTION_TEXT(type, member_)                                                                           \
    .set_key = option_set_text, .member = offsetof(type, member_) // const char *
#define OPTION_EXPIRY(type, member_)                                                                         \
    .set_key = option_set_expiry, .member = offsetof(type, member_) // int64_t, milliseconds

/* Where the value of the row goes: for functions of further kinds of rows. */
void *option_member(void *target, const struct option_row *row);
int option_set_flag(void *target, const struct option_row *row, const char *value, struct error *err);
/* Any text but an empty one. */
int option_set_text(void *target, const struct option_row *row, const char *value, struct error *err);
/* For how long something is good: a second at least. */
int option_set_expiry(void *target, const struct option_row *row, const char *value, struct error *err);

/* As option_set_text(); `what` names the option in the sentence: "--user". */
int option_text(const char *what, const char *value, const char **ret, struct error *err);
