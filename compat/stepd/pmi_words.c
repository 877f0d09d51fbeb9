/* SPDX-License-Identifier: MIT */
#include "compat/stepd/pmi_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LENGTH_DIGITS 6U

static void drop(struct buffer *in, size_t length)
{
    in->length -= length;
    memmove(in->bytes, in->bytes + length, in->length);
}

/* "cmd=put kvsname=x key=y value=a b": the value, which is last, may contain blanks. */
static int take_line(struct buffer *in, struct strings *ret)
{
    const char *text = (const char *)in->bytes;
    const char *end = in->length > 0 ? memchr(text, '\n', in->length) : NULL;
    if (end == NULL)
        return in->length > PMI_MESSAGE_MAX ? -EBADMSG : 0;
    size_t length = (size_t)(end - text);
    if (memchr(text, '\0', length) != NULL)
        return -EBADMSG;
    _cleanup_free_ char *line = xstrndup(text, length);
    drop(in, length + 1);
    char *rest = line;
    while (rest != NULL) {
        rest += strspn(rest, " ");
        bool is_last = strncmp(rest, "value=", 6) == 0;
        char *word = is_last ? rest : strsep(&rest, " ");
        if (word[0] != '\0')
            strings_add(ret, word);
        if (is_last)
            break;
    }
    return 1;
}

static int take_counted(struct buffer *in, struct strings *ret)
{
    size_t length = 0;
    if (in->length < LENGTH_DIGITS)
        return 0;
    for (size_t i = 0; i < LENGTH_DIGITS; i++) {
        if (in->bytes[i] == ' ')
            continue;
        if (in->bytes[i] < '0' || in->bytes[i] > '9')
            return -EBADMSG;
        length = length * 10 + (size_t)(in->bytes[i] - '0');
    }
    if (length > PMI_MESSAGE_MAX)
        return -EBADMSG;
    if (in->length < LENGTH_DIGITS + length)
        return 0;
    _cleanup_buffer_ struct buffer word = { 0 };
    const char *text = (const char *)in->bytes + LENGTH_DIGITS;
    for (size_t i = 0; i < length; i++) {
        bool is_doubled = text[i] == ';' && i + 1 < length && text[i + 1] == ';';
        if (text[i] == '\0')
            return -EBADMSG;
        if (text[i] == ';' && !is_doubled) {
            strings_add(ret, buffer_text(&word));
            word.length = 0;
            continue;
        }
        buffer_append(&word, &text[i], 1);
        i += is_doubled;
    }
    if (word.length > 0)
        strings_add(ret, buffer_text(&word));
    drop(in, LENGTH_DIGITS + length);
    return 1;
}

int pmi_words_take(struct buffer *in, enum pmi_version version, struct strings *ret)
{
    return version == PMI_ONE ? take_line(in, ret) : take_counted(in, ret);
}

static void add(struct buffer *out, enum pmi_version version, const char *name, const char *value)
{
    buffer_printf(out, "%s%s=", version == PMI_ONE && out->length > 0 ? " " : "", name);
    for (; *value != '\0'; value++)
        buffer_append(out, version == PMI_TWO && *value == ';' ? ";;" : value,
            version == PMI_TWO && *value == ';' ? 2 : 1);
    if (version == PMI_TWO)
        buffer_append(out, ";", 1);
}

void pmi_words_put(struct buffer *out, enum pmi_version version, const char *cmd, ...)
{
    _cleanup_buffer_ struct buffer message = { 0 };
    va_list words;
    add(&message, version, "cmd", cmd);
    va_start(words, cmd);
    for (const char *name; (name = va_arg(words, const char *)) != NULL;)
        add(&message, version, name, va_arg(words, const char *));
    va_end(words);
    if (version == PMI_TWO)
        buffer_printf(out, "%6zu", message.length);
    buffer_append(out, message.bytes, message.length);
    if (version == PMI_ONE)
        buffer_append(out, "\n", 1);
}
