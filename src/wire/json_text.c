/* SPDX-License-Identifier: MIT */
/*
 * The parser is jansson in strict mode. Before it runs, scan() reads the text once and counts brackets and
 * commas outside strings: jansson has a fixed depth limit (2048) and no limit on the number of values, and 2
 * MiB of "[],[]," would need 100 times as much memory.
 */
#include "wire/json_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/strings.h"
#include "base/utc.h"
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
        abort(); // only if out of memory: every string was checked when it was created
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
    utc_format(wall_ms, text, sizeof(text));
    return json_string(text);
}

/* "Z", "+01:00" or "-05:30" in milliseconds; false for anything else. */
static bool parse_offset(const char *text, int64_t *ret_ms)
{
    unsigned hours = 0, minutes = 0;
    int end = 0;
    *ret_ms = 0;
    if (strcasecmp(text, "Z") == 0)
        return true;
    bool is_offset = (text[0] == '+' || text[0] == '-') && isdigit((unsigned char)text[1]) &&
                     sscanf(text + 1, "%2u:%2u%n", &hours, &minutes, &end) == 2 && text[1 + end] == '\0';
    if (!is_offset || end != 5 || hours > 23 || minutes > 59)
        return false;
    *ret_ms = (int64_t)(hours * 60 + minutes) * (text[0] == '-' ? -60000 : 60000);
    return true;
}

int64_t json_text_parse_time(const char *text)
{
    struct tm when = { 0 };
    int64_t fraction = 0, offset = 0;
    /* strptime also accepts white space, single digits, and more forms of a year. */
    if (strspn(text, "0123456789") != 4 || strcspn(text, "Tt") != 10)
        return -1;
    const char *rest = strptime(text, text[10] == 'T' ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%dt%H:%M:%S", &when);
    if (rest == NULL || rest - text != 19)
        return -1;
    if (*rest == '.') {
        size_t digits = strspn(++rest, "0123456789");
        for (int i = 0, unit = 100; i < 3 && (size_t)i < digits; i++, unit /= 10)
            fraction += unit * (rest[i] - '0');
        rest += digits;
        if (digits == 0)
            return -1;
    }
    if (!parse_offset(rest, &offset))
        return -1;
    int64_t ms = (int64_t)timegm(&when) * 1000 + fraction - offset;
    return ms >= 0 ? ms : -1;
}

json_t *json_text_milli(uint32_t milli)
{
    return milli % 1000 == 0 ? json_integer(milli / 1000) : json_real(milli / 1000.0);
}

json_t *json_text_seconds(int64_t ms)
{
    return json_real((double)(ms > 0 ? ms : 0) / 1000.0);
}
