/* SPDX-License-Identifier: MIT */
/* Messages of mgpu on standard error: one sentence that names the verb, and a hint. */
#pragma once

#include "base/error.h"
#include "base/wording.h"

/* Sets the name of this program, "mgpu_srun", and of its running verb: "" if it has no verbs. Borrowed. */
void talk_as(const char *program, const char *verb);

/* Replaces mgpu's names in hints and messages from now on: "--gpus" for "-g". */
void talk_translate(const struct wording *words);

/* The text with these names. The caller frees it. */
char *talk_in_own_words(const char *text);

/* The name set by talk_as. */
const char *talk_program(void);

/* The verb with a leading blank, or an empty text. The caller frees it. */
char *talk_verb(const char *verb);

/* "mgpu VERB: sentence" and "hint: ...". `verb` may be NULL. */
void talk_error(const char *verb, const struct error *err);

/* One message line "mgpu: ...". */
void talk_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
