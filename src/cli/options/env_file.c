/* SPDX-License-Identifier: MIT */
#include "cli/options/env_file.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/text_file.h"
#include "cli/term/words.h"

#define BLANKS " \t"
#define EXPORT "export"

/* The character for \X in double quotes; other pairs are unchanged. */
static bool is_escape(const char *p, char *ret)
{
    static const char from[] = "nt\"\\$`", to[] = "\n\t\"\\$`";
    const char *found = p[0] == '\\' && p[1] != '\0' ? strchr(from, p[1]) : NULL;
    if (found != NULL)
        *ret = to[found - from];
    return found != NULL;
}

/* Reads the value behind its opening quote into `out`; what follows it, or NULL when it is not closed. */
static const char *read_quoted(const char *p, struct buffer *out)
{
    char quote = *p++, escaped = 0;
    for (; *p != '\0' && *p != quote; p++) {
        if (quote == '"' && is_escape(p, &escaped)) {
            buffer_append(out, &escaped, 1);
            p++;
        } else {
            buffer_append(out, p, 1);
        }
    }
    return *p == quote ? p + 1 : NULL;
}

/* Up to a blank with a # behind it, without the blanks at the end. */
static void read_plain(const char *text, struct buffer *out)
{
    size_t length = strlen(text);
    for (const char *p = strchr(text, '#'); p != NULL; p = strchr(p + 1, '#'))
        if (p == text || strchr(BLANKS, p[-1]) != NULL) {
            length = (size_t)(p - text);
            break;
        }
    while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL)
        length--;
    buffer_append(out, text, length);
}

static int read_value(const struct text_file *file, const char *text, struct buffer *out, struct error *err)
{
    if (text[0] != '\'' && text[0] != '"') {
        read_plain(text, out);
        return 0;
    }
    const char *end = read_quoted(text, out);
    if (end == NULL)
        return text_file_refuse(file, err, "a quote is not closed");
    end += strspn(end, BLANKS);
    if (*end != '\0' && *end != '#')
        return text_file_refuse(file, err, "'%.60s' follows the closing quote", end);
    return 0;
}

static int read_line(const struct text_file *file, char *line, json_t *ret, struct error *err)
{
    _cleanup_buffer_ struct buffer value = { 0 };
    char *name = line + strspn(line, BLANKS);
    if (name[0] == '\0' || name[0] == '#')
        return 0;
    if (strncmp(name, EXPORT, strlen(EXPORT)) == 0 && strspn(name + strlen(EXPORT), BLANKS) > 0)
        name += strlen(EXPORT) + strspn(name + strlen(EXPORT), BLANKS);
    char *equals = strchr(name, '=');
    if (equals == NULL)
        return text_file_refuse(file, err, "'%.60s' is not NAME=VALUE", name);
    *equals = '\0';
    if (!words_is_variable(name))
        return text_file_refuse(file, err, "'%.60s' is not a valid variable name", name);
    int r = read_value(file, equals + 1, &value, err);
    if (r < 0)
        return r;
    if (json_object_set_new(ret, name, json_string(buffer_text(&value))) < 0)
        return text_file_refuse(file, err, "the value of %.60s is not UTF-8 text", name);
    return 0;
}

int env_file_read(const char *path, json_t **ret, struct error *err)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    _cleanup_json_ json_t *variables = json_object();
    int r = text_file_open(&file, path, ENV_FILE_MAX, err);
    if (r < 0)
        return error_wrap(err, "--env-file");
    for (char *line = NULL; r == 0 && (line = text_file_next(&file)) != NULL;)
        r = read_line(&file, line, variables, err);
    if (r == 0)
        *ret = take_ptr(variables);
    return r;
}
