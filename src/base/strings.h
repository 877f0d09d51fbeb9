/* SPDX-License-Identifier: MIT */
/* A list of strings that owns them, and text helpers used by every program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#include "base/memory.h"

struct strings {
    char **items; // `count` strings and a terminating NULL, usable as argv or envp
    size_t count;
};

/* Appends a copy of `text`. */
void strings_add(struct strings *strings, const char *text);

/* Appends `text` and takes ownership of it. */
void strings_take(struct strings *strings, char *text);

/* Sets "NAME=value" in an environment list, replacing an entry of that name in place. */
void strings_set_env(struct strings *strings, const char *name, const char *value);

/* Sets all entries of another environment list, as strings_set_env() does one after the other, in time that
 * does not grow with the product of both lists. Entries without '=' are left out. */
void strings_merge_env(struct strings *strings, const struct strings *more);

/* The value of `name` in an environment list, or NULL. Owned by the list. */
const char *strings_get_env(const struct strings *strings, const char *name);

bool strings_have(const struct strings *strings, const char *text);
void strings_copy(struct strings *to, const struct strings *from);
void strings_clear(struct strings *strings);

#define _cleanup_strings_ _cleanup_(strings_clear)

bool text_equal(const char *a, const char *b); // NULL equals only NULL

/* The command quoted for a shell. The caller frees it. */
char *text_quote_command(const struct strings *command);

/* Escapes text for terminals and log lines: control bytes, invalid UTF-8 and characters that change the text
 * direction or break lines become \xNN. At most `limit` bytes of input are kept; an ellipsis marks a cut. The
 * result can be longer than `limit`: an escape takes four bytes, an ellipsis three. The caller frees it. */
char *text_escape(const char *text, size_t limit);

/* Is this one character of UTF-8, which neither drives a terminal nor changes the order of other text? */
bool text_is_shown(const char *character, size_t length);

/* The same, but limits the result to `size` bytes (3 or more), escapes and ellipsis included. */
char *text_escape_fit(const char *text, size_t size);

/* The candidate closest to `word` if it is close enough to be a typing error (Damerau-Levenshtein distance of
 * at most a third of the word), else NULL. `candidates` is terminated by NULL. */
const char *text_nearest(const char *word, const char *const *candidates);

/* --- byte order marks, which editors of other systems write at the beginning of a text --- */

/* Length of the mark of UTF-8 at the beginning, which is no part of the text: 3 or 0. */
size_t text_mark_length(const void *bytes, size_t length);

/* True if the bytes begin with a mark of UTF-16 or UTF-32. */
bool text_mark_is_wide(const void *bytes, size_t length);

/* Returns -EINVAL with the sentence about such a text, and how to convert it. */
int text_mark_refuse(const char *name, struct error *err);
