/* SPDX-License-Identifier: MIT */
/* The forms of strings and numbers are those of jansson: see dump.c and strconv.c there. */
#include "wire/json_append.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wire/json_text.h"

#define INTEGER_SIZE 24U
#define MILLI_MAX    1e12 // thousandths below this are exact in a double

static void append_escape(struct buffer *out, unsigned char c)
{
    static const char *const shorts[] = { ['"'] = "\\\"",
        ['\\'] = "\\\\",
        ['\b'] = "\\b",
        ['\f'] = "\\f",
        ['\n'] = "\\n",
        ['\r'] = "\\r",
        ['\t'] = "\\t" };
    if (c < sizeof(shorts) / sizeof(shorts[0]) && shorts[c] != NULL)
        buffer_append_text(out, shorts[c]);
    else
        buffer_printf(out, "\\u%04X", c);
}

static void append_string(struct buffer *out, const char *text, size_t length)
{
    size_t from = 0;
    buffer_append(out, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buffer_append(out, text + from, i - from);
        append_escape(out, c);
        from = i + 1;
    }
    buffer_append(out, text + from, length - from);
    buffer_append(out, "\"", 1);
}

static void append_integer(struct buffer *out, int64_t number)
{
    char digits[INTEGER_SIZE];
    size_t at = sizeof(digits);
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        digits[--at] = '-';
    buffer_append(out, digits + at, sizeof(digits) - at);
}

/* Most are thousandths: seconds, shares. False: another number. */
static bool append_milli(struct buffer *out, double number)
{
    double milli = number * 1000;
    if (!(number >= 0 && milli < MILLI_MAX) || signbit(number))
        return false;
    uint64_t whole = (uint64_t)(milli + 0.5);
    if ((double)whole / 1000.0 != number)
        return false;
    char rest[4] = { (char)('0' + whole / 100 % 10), (char)('0' + whole / 10 % 10),
        (char)('0' + whole % 10) };
    size_t n = rest[2] != '0' ? 3 : rest[1] != '0' ? 2 : 1;
    append_integer(out, (int64_t)(whole / 1000));
    buffer_append(out, ".", 1);
    buffer_append(out, rest, n);
    return true;
}

static void append_other(struct buffer *out, const json_t *value)
{
    _cleanup_free_ char *text = json_text_format(value);
    buffer_append_text(out, text);
}

static void append_array(struct buffer *out, const json_t *array)
{
    buffer_append(out, "[", 1);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            buffer_append(out, ",", 1);
        json_append(out, json_array_get(array, i));
    }
    buffer_append(out, "]", 1);
}

static void append_object(struct buffer *out, json_t *object)
{
    bool has_one = false;
    buffer_append(out, "{", 1);
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        if (has_one)
            buffer_append(out, ",", 1);
        has_one = true;
        append_string(out, name, strlen(name));
        buffer_append(out, ":", 1);
        json_append(out, json_object_iter_value(at));
    }
    buffer_append(out, "}", 1);
}

void json_append(struct buffer *out, json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL: buffer_append(out, "null", 4); return;
    case JSON_TRUE: buffer_append(out, "true", 4); return;
    case JSON_FALSE: buffer_append(out, "false", 5); return;
    case JSON_INTEGER: append_integer(out, json_integer_value(value)); return;
    case JSON_STRING: append_string(out, json_string_value(value), json_string_length(value)); return;
    case JSON_ARRAY: append_array(out, value); return;
    case JSON_OBJECT: append_object(out, value); return;
    case JSON_REAL: break;
    }
    if (!append_milli(out, json_real_value(value)))
        append_other(out, value);
}

void json_members_begin(struct json_members *members, struct buffer *out, bool is_sparse)
{
    *members = (struct json_members){ .out = out, .is_sparse = is_sparse };
    buffer_append(out, "{", 1);
}

void json_members_add(struct json_members *members, const char *name, json_t *value)
{
    if (members->is_sparse && (json_is_null(value) || json_is_false(value)))
        return; // both are singletons without an owner
    if (members->tree != NULL) {
        (void)json_object_set_new_nocheck(members->tree, name, value);
        return;
    }
    if (members->has_one)
        buffer_append(members->out, ",\"", 2);
    else
        buffer_append(members->out, "\"", 1);
    members->has_one = true;
    buffer_append_text(members->out, name);
    buffer_append(members->out, "\":", 2);
    json_append(members->out, value);
    json_decref(value);
}

void json_members_end(struct json_members *members)
{
    buffer_append(members->out, "}", 1);
}
