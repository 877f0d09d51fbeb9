/* SPDX-License-Identifier: MIT */
#include "cli/term/words.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define ESCAPED_IN_QUOTES "\"\\$`"

/* Parses a quoted string, from after the opening quote to after the closing one; NULL if it is missing.
 * `is_dollar` is $'...', in which a backslash escapes a quote. */
static const char *take_quoted(const char *p, bool is_dollar, struct buffer *word)
{
    char quote = *p++;
    for (; *p != '\0' && *p != quote; p++) {
        bool is_escape = *p == '\\' && p[1] != '\0' &&
                         (is_dollar || (quote == '"' && strchr(ESCAPED_IN_QUOTES, p[1]) != NULL));
        p += is_escape ? 1 : 0;
        buffer_append(word, p, 1);
    }
    return *p == quote ? p + 1 : NULL;
}

static const char *take_word(const char *p, struct buffer *word)
{
    while (p != NULL && *p != '\0' && *p != ' ' && *p != '\t') {
        bool is_dollar = *p == '$' && p[1] == '\'';
        if (*p == '\'' || *p == '"' || is_dollar) {
            p = take_quoted(p + is_dollar, is_dollar, word);
            continue;
        }
        p += *p == '\\' && p[1] != '\0' ? 1 : 0;
        buffer_append(word, p++, 1);
    }
    return p;
}

static int split(const char *line, bool has_comments, struct strings *ret, struct error *err)
{
    const char *p = line + strspn(line, " \t");
    while (*p != '\0' && !(has_comments && *p == '#')) {
        _cleanup_buffer_ struct buffer word = { 0 };
        p = take_word(p, &word);
        if (p == NULL)
            return error_set(err, -EINVAL, "a quote is not closed");
        strings_take(ret, word.length > 0 ? buffer_take(&word) : xstrdup(""));
        p += strspn(p, " \t");
    }
    return 0;
}

int words_split(const char *line, struct strings *ret, struct error *err)
{
    return split(line, true, ret, err);
}

int words_split_all(const char *line, struct strings *ret, struct error *err)
{
    return split(line, false, ret, err);
}

bool words_is_variable(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_')
        return false;
    for (const char *p = name; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return true;
}
