/* SPDX-License-Identifier: MIT */
/* Messages may quote untrusted text, so all are escaped before they are printed. */
#include "cli/options/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"

#define LINE_MAX_BYTES 2048

/* Set once, before any message. */
static const char *program_name = "mgpu";
static const char *verb_name; // NULL: its own
static const struct wording *hint_words;

void talk_as(const char *program, const char *verb)
{
    program_name = program;
    verb_name = verb;
}

void talk_translate(const struct wording *words)
{
    hint_words = words;
}

char *talk_in_own_words(const char *text)
{
    return wording_apply(hint_words, text);
}

char *talk_verb(const char *verb)
{
    const char *named = verb != NULL && verb_name != NULL ? verb_name : verb;
    return named == NULL || named[0] == '\0' ? xstrdup("") : xasprintf(" %s", named);
}

const char *talk_program(void)
{
    return program_name;
}

void talk_error(const char *verb, const struct error *err)
{
    _cleanup_free_ char *message = text_escape(err->message, sizeof(err->message));
    _cleanup_free_ char *own = wording_apply(hint_words, err->hint);
    _cleanup_free_ char *hint = text_escape(own, sizeof(err->hint));
    _cleanup_free_ char *named = talk_verb(verb);
    (void)fprintf(stderr, "%s%s: %s\n", program_name, named, message);
    if (hint[0] != '\0')
        (void)fprintf(stderr, "hint: %s\n", hint);
}

void talk_line(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    _cleanup_free_ char *own = wording_apply(hint_words, line);
    _cleanup_free_ char *shown = text_escape(own, sizeof(line));
    (void)fprintf(stderr, "%s: %s\n", program_name, shown);
}
