/* SPDX-License-Identifier: MIT */
/*
 * Messages of PMI: words KEY=VALUE. PMI-1 sends a line with blanks between the words; PMI-2 six digits of
 * length and then words that end with ";" (";;" is a semicolon of the value).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/strings.h"

#define PMI_MESSAGE_MAX 65536U

enum pmi_version { PMI_ONE = 1, PMI_TWO = 2 };

/* The next message of `in`: 1, 0 if it is not complete, -EBADMSG if it is none. Its bytes are removed. Words
 * are added to `ret` as NAME=VALUE. */
int pmi_words_take(struct buffer *in, enum pmi_version version, struct strings *ret);

/* "cmd=NAME", then pairs of name and value that end with NULL. */
void pmi_words_put(struct buffer *out, enum pmi_version version, const char *cmd, ...)
    __attribute__((sentinel));
