/* SPDX-License-Identifier: MIT */
/* A list of strings that owns them, and the few text helpers every program needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

struct strings {
    char **items; // `count` strings and a closing NULL, so that it is an argv or envp as it stands
    size_t count;
};

/* Appends a copy of `text`. */
void strings_add(struct strings *strings, const char *text);

/* Appends `text` and takes it over. */
void strings_take(struct strings *strings, char *text);

/* Sets "NAME=value" in an environment list, replacing an entry of that name in place. */
void strings_set_env(struct strings *strings, const char *name, const char *value);

/* The value of `name` in an environment list, or NULL. Owned by the list. */
const char *strings_get_env(const struct strings *strings, const char *name);

/* Removes every entry called `name` from an environment list. */
void strings_unset_env(struct strings *strings, const char *name);

void strings_copy(struct strings *to, const struct strings *from);
void strings_clear(struct strings *strings);

#define _cleanup_strings_ _cleanup_(strings_clear)

bool text_equal(const char *a, const char *b); // NULL equals only NULL

/* The command as a shell would need it typed, words quoted where necessary. The caller frees it. */
char *text_quote_command(const struct strings *command);

/* Text made safe for a terminal or a log line: control bytes, bad UTF-8 and characters that turn the
 * direction of text or break lines become \xNN; at most `limit` bytes of input are kept, a cut is shown by an
 * ellipsis. The result can be longer than `limit`: an escape takes four bytes, an ellipsis three. The caller
 * frees it. */
char *text_escape(const char *text, size_t limit);

/* The same, but it is the result that has at most `size` bytes (3 or more), escapes and ellipsis included:
 * for texts that go where there is a limit. */
char *text_escape_fit(const char *text, size_t size);

/* The candidate nearest to `word` when it is near enough to be a slip of the fingers, else NULL.
 * `candidates` ends with NULL. Damerau-Levenshtein distance of at most a third of the word. */
const char *text_nearest(const char *word, const char *const *candidates);
