/* SPDX-License-Identifier: MIT */
/* What mgpu says on standard error: one sentence that names the verb, and a hint. */
#pragma once

#include "base/error.h"
#include "base/wording.h"

/* The name that this program goes by from now on, "mgpu_srun", and what the verb that runs is called there:
 * "" of one that has no verbs. The texts must stay. */
void talk_as(const char *program, const char *verb);

/* From now on hints and talk have these words for the names of mgpu: "--gpus" for "-g". */
void talk_translate(const struct wording *words);

/* The text with these words. The caller frees it. */
char *talk_in_own_words(const char *text);

/* The name of talk_as. */
const char *talk_program(void);

/* A verb as it is said after it: " submit", or nothing. The caller frees it. */
char *talk_verb(const char *verb);

/* "mgpu VERB: sentence" and "hint: ...". `verb` may be NULL. */
void talk_error(const char *verb, const struct error *err);

/* One line "mgpu: ..." of talk. */
void talk_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
