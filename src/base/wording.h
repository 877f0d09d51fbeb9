/* SPDX-License-Identifier: MIT */
/* Names in sentences for people, replaced by those of the command that was typed: "--listen" by "--port". */
#pragma once

#include "base/memory.h"

/* A name or a phrase, and what stands in its place. */
struct wording {
    const char *from, *to;
};

/* The text with every name replaced where it is a word of its own; the first that fits wins, so of two that
 * begin alike the longer comes first. `wording` is ended by a NULL `from`, or NULL. The caller frees it. */
char *wording_apply(const struct wording *wording, const char *text);

/* Hands the names to the program that is executed next, by its environment, after those handed over before.
 */
void wording_hand_over(const struct wording *wording);

/* What was handed to this program, which passes it on to none: one block, which the caller frees. */
struct wording *wording_take_over(void);
