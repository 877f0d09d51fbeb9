/* SPDX-License-Identifier: MIT */
/* Splits a line of text into words like a shell, without expanding anything. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

/* Appends the words of the line up to a comment. Quotes and backslashes work as in a shell. -EINVAL if a
 * quote is not closed; `ret` may then contain some words. */
int words_split(const char *line, struct strings *ret, struct error *err);

/* The same without comments. */
int words_split_all(const char *line, struct strings *ret, struct error *err);

/* True for a valid name of a shell variable. */
bool words_is_variable(const char *name);
