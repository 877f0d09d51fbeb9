/* SPDX-License-Identifier: MIT */
/* A line of text as the words that a shell would make of it, without expanding anything. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

/* Appends the words of the line up to a comment. Quotes and backslashes mean what they mean to a shell.
 * -EINVAL when a quote is not closed; `ret` may then hold some words. */
int words_split(const char *line, struct strings *ret, struct error *err);

/* The same of a line in which # begins no comment. */
int words_split_all(const char *line, struct strings *ret, struct error *err);

/* A name that a shell can give to a variable. */
bool words_is_variable(const char *name);
