/* SPDX-License-Identifier: MIT */
/*
 * The parser is jansson in its strict mode. Before it sees a byte, scan() walks the text once and counts
 * brackets and commas outside strings: jansson has a fixed depth limit of its own (2048) and no limit on the
 * number of values, and 2 MiB of "[],[]," would become 100 times as much memory.
 */
#include "wire/json_text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "wire/limits.h"

static int scan(const char *bytes, size_t length, struct error *err)
{
    size_t depth = 0, values = 1;
    bool is_string = false;
    for (size_t i = 0; i < length; i++) {
        char c = bytes[i];
        if (is_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                is_string = false;
            continue;
        }
        if (c == '"')
            is_string = true;
        else if (c == '[' || c == '{')
            depth++, values++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        else if (c == ',')
            values++;
        if (depth > LIMIT_JSON_DEPTH)
            return error_set(err, -EINVAL, "the JSON is nested deeper than %d levels", LIMIT_JSON_DEPTH);
        if (values > LIMIT_JSON_VALUES)
            return error_set(err, -EINVAL, "the JSON has more than %d values", LIMIT_JSON_VALUES);
    }
    return 0;
}

int json_text_parse(const char *bytes, size_t length, json_t **ret, struct error *err)
{
    int r = scan(bytes, length, err);
    if (r < 0)
        return r;
    json_error_t at;
    json_t *value = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &at);
    if (value == NULL) {
        _cleanup_free_ char *text = text_escape(at.text, sizeof(at.text));
        return error_set(err, -EINVAL, "not valid JSON at line %d, column %d: %s", at.line, at.column, text);
    }
    *ret = value;
    return 0;
}

char *json_text_format(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    if (text == NULL)
        abort(); // only when memory is out: every string was checked when it was made
    return text;
}

json_t *json_text_string(const char *text)
{
    if (text == NULL)
        return json_null();
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    _cleanup_free_ char *escaped = text_escape(text, strlen(text));
    value = json_string(escaped);
    if (value == NULL)
        abort();
    return value;
}

json_t *json_text_time(int64_t wall_ms)
{
    if (wall_ms == 0)
        return json_null();
    char text[64];
    clock_format_utc(wall_ms, text, sizeof(text));
    return json_string(text);
}

json_t *json_text_seconds(int64_t ms)
{
    return json_real((double)(ms > 0 ? ms : 0) / 1000.0);
}
