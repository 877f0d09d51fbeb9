/* SPDX-License-Identifier: MIT */
/* Replaces names in messages by those of the command the user typed: "--listen" by "--port". */
#pragma once

#include "base/memory.h"

/* A name or phrase and its replacement. */
struct wording {
    const char *from, *to;
};

/* Replaces every name that occurs as a whole word. The first match wins, so of two names with a common prefix
 * the longer must come first. `wording` is terminated by a NULL `from`, and may be NULL. The caller frees the
 * result. */
char *wording_apply(const struct wording *wording, const char *text);

/* Passes the names on to the program executed next, in its environment, after those passed on before. */
void wording_hand_over(const struct wording *wording);

/* The names passed on to this program, which does not pass them on again: one block, which the caller
 * frees. */
struct wording *wording_take_over(void);
