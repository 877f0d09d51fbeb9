/* SPDX-License-Identifier: MIT */
/*
 * One reader, one writer and one schema for each kind of field, in a table indexed by kind. A new kind is a
 * row here and in base/record.c.
 */
#include "wire/json_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "wire/json_text.h"

#define WHAT_SIZE 100 // "env.NAME" in a sentence; long names are cut

static const char *type_word(const json_t *value)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a whole number",
        [JSON_REAL] = "a number with a fraction",
        [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",
        [JSON_NULL] = "null",
    };
    return words[json_typeof(value)];
}

static int wrong_type(const struct record_field *field, json_t *value, const char *wanted, struct error *err)
{
    return error_set(err, -EINVAL, "%s must be %s, not %s", field->name, wanted, type_word(value));
}

/* A whole number within [min, max]. */
static int get_integer(const struct record_field *field, json_t *value, int64_t min, int64_t max,
    int64_t *ret, struct error *err)
{
    if (!json_is_integer(value))
        return wrong_type(field, value, "a whole number", err);
    int64_t number = json_integer_value(value);
    if (number < min || number > max)
        return error_set(err, -ERANGE, "%s: %" PRId64 " is outside %" PRId64 " to %" PRId64, field->name,
            number, min, max);
    *ret = number;
    return 0;
}

static int read_bool(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (!json_is_boolean(value))
        return wrong_type(field, value, "true or false", err);
    *(bool *)member = json_is_true(value);
    return 0;
}

static int read_u32(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    int64_t number = 0;
    int r = get_integer(field, value, 0, UINT32_MAX, &number, err);
    if (r == 0)
        *(uint32_t *)member = (uint32_t)number;
    return r;
}

static int read_i32(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    int64_t number = 0;
    int r = get_integer(field, value, INT32_MIN, INT32_MAX, &number, err);
    if (r == 0)
        *(int32_t *)member = (int32_t)number;
    return r;
}

static int read_u64(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    int64_t number = 0;
    int r = get_integer(field, value, 0, INT64_MAX, &number, err);
    if (r == 0)
        *(uint64_t *)member = (uint64_t)number;
    return r;
}

static int read_i64(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    int64_t number = 0;
    int r = get_integer(field, value, INT64_MIN, INT64_MAX, &number, err);
    if (r == 0)
        *(int64_t *)member = number;
    return r;
}

static int read_size(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (json_is_string(value))
        return parse_size(json_string_value(value), field->name, member, err);
    if (!json_is_integer(value))
        return wrong_type(field, value, "a number of bytes or a text such as \"8G\"", err);
    return read_u64(field, value, member, err);
}

static int read_milli(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (!json_is_number(value))
        return wrong_type(field, value, "a number", err);
    double number = json_number_value(value);
    if (number < 0 || number > UINT32_MAX / 1000)
        return error_set(err, -ERANGE, "%s: %g is outside 0 to %u", field->name, number, UINT32_MAX / 1000);
    uint32_t milli = (uint32_t)(number * 1000 + 0.5);
    if (milli == 0 && number > 0)
        return error_set(err, -ERANGE, "%s: %g is less than 0.001", field->name, number);
    *(uint32_t *)member = milli;
    return 0;
}

#define SECONDS_MAX 3153600000LL // a hundred years

static int read_duration(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (json_is_string(value))
        return parse_duration(json_string_value(value), field->name, member, err);
    if (!json_is_number(value))
        return wrong_type(field, value, "a number of seconds or a text such as \"4h\"", err);
    double seconds = json_number_value(value);
    if (seconds < 0 || seconds > (double)SECONDS_MAX)
        return error_set(
            err, -ERANGE, "%s: %g is outside 0 to %lld seconds", field->name, seconds, SECONDS_MAX);
    *(int64_t *)member = (int64_t)(seconds * 1000 + 0.5);
    return 0;
}

/* The text of a JSON string; NULL, with a sentence, for another value or when a NUL would cut it short. */
static const char *get_text(const char *what, const json_t *value, struct error *err)
{
    const char *text = json_string_value(value);
    if (text == NULL) {
        (void)error_set(err, -EINVAL, "%s must be a string, not %s", what, type_word(value));
        return NULL;
    }
    if (strlen(text) != json_string_length(value)) {
        (void)error_set(err, -EINVAL, "%s contains a NUL byte", what);
        return NULL;
    }
    return text;
}

static int read_time(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    const char *text = get_text(field->name, value, err);
    if (text == NULL)
        return -EINVAL;
    int64_t ms = json_text_parse_time(text);
    if (ms < 0) {
        _cleanup_free_ char *shown = text_escape(text, 60);
        (void)error_set(err, -EINVAL, "%s: '%s' is not a time", field->name, shown);
        return error_hint(err, "use RFC 3339: 2026-11-22T14:00:00Z or 2026-11-22T14:00:00+01:00");
    }
    *(int64_t *)member = ms;
    return 0;
}

static int too_long(const struct record_field *field, size_t bytes, struct error *err)
{
    return error_set(err, -E2BIG, "%s has %zu bytes; at most %u", field->name, bytes, field->limit);
}

static int read_string(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    const char *text = get_text(field->name, value, err);
    if (text == NULL)
        return -EINVAL;
    if (strlen(text) > field->limit)
        return too_long(field, strlen(text), err);
    free(*(char **)member);
    *(char **)member = xstrdup(text);
    return 0;
}

static int read_strings(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (!json_is_array(value))
        return wrong_type(field, value, "an array of strings", err);
    struct strings *strings = member;
    strings_clear(strings);
    size_t bytes = 0, i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        char what[WHAT_SIZE];
        (void)snprintf(what, sizeof(what), "%s[%zu]", field->name, i);
        const char *text = get_text(what, item, err);
        if (text == NULL)
            return -EINVAL;
        bytes += strlen(text) + 1;
        if (bytes > field->limit)
            return too_long(field, bytes, err);
        strings_add(strings, text);
    }
    return 0;
}

static int read_env(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (!json_is_object(value))
        return wrong_type(field, value, "an object of strings", err);
    struct strings *strings = member;
    strings_clear(strings);
    size_t bytes = 0;
    const char *name;
    json_t *item;
    json_object_foreach(value, name, item)
    {
        if (*name == '\0' || strchr(name, '=') != NULL)
            return error_set(err, -EINVAL, "%s: '%.60s' is not the name of a variable", field->name, name);
        char what[WHAT_SIZE];
        (void)snprintf(what, sizeof(what), "%s.%.60s", field->name, name);
        const char *text = get_text(what, item, err);
        if (text == NULL)
            return -EINVAL;
        bytes += strlen(name) + strlen(text) + 2;
        if (bytes > field->limit)
            return too_long(field, bytes, err);
        strings_take(strings, xasprintf("%s=%s", name, text));
    }
    return 0;
}

static int read_list(const struct record_field *field, json_t *value, void *member, struct error *err)
{
    if (!json_is_array(value))
        return wrong_type(field, value, "an array of objects", err);
    size_t count = json_array_size(value);
    if (count > field->limit)
        return error_set(err, -E2BIG, "%s has %zu items; at most %u", field->name, count, field->limit);
    struct record_list *list = member;
    size_t size = field->sub->size;
    for (size_t i = 0; i < list->count; i++)
        record_clear(field->sub, (char *)list->items + i * size);
    free(list->items);
    *list = (struct record_list){ .items = count > 0 ? xcalloc(count, size) : NULL, .count = count };
    for (size_t i = 0; i < count; i++) {
        int r = json_record_read(field->sub, json_array_get(value, i), (char *)list->items + i * size, err);
        if (r < 0)
            return error_wrap(err, "%s[%zu]", field->name, i);
    }
    return 0;
}

static json_t *write_bool(const struct record_field *field, const void *member)
{
    return json_boolean(*(const bool *)member);
}

static json_t *write_u32(const struct record_field *field, const void *member)
{
    return json_integer(*(const uint32_t *)member);
}

static json_t *write_i32(const struct record_field *field, const void *member)
{
    return json_integer(*(const int32_t *)member);
}

static json_t *write_u64(const struct record_field *field, const void *member)
{
    return json_integer((json_int_t) * (const uint64_t *)member);
}

static json_t *write_i64(const struct record_field *field, const void *member)
{
    return json_integer(*(const int64_t *)member);
}

static json_t *write_milli(const struct record_field *field, const void *member)
{
    return json_text_milli(*(const uint32_t *)member);
}

static json_t *write_duration(const struct record_field *field, const void *member)
{
    return json_text_seconds(*(const int64_t *)member);
}

static json_t *write_time(const struct record_field *field, const void *member)
{
    return json_text_time(*(const int64_t *)member);
}

static json_t *write_string(const struct record_field *field, const void *member)
{
    return json_text_string(*(char *const *)member);
}

static json_t *write_strings(const struct record_field *field, const void *member)
{
    const struct strings *strings = member;
    json_t *array = json_array();
    for (size_t i = 0; i < strings->count; i++)
        (void)json_array_append_new(array, json_text_string(strings->items[i]));
    return array;
}

static json_t *write_env(const struct record_field *field, const void *member)
{
    const struct strings *strings = member;
    json_t *object = json_object();
    for (size_t i = 0; i < strings->count; i++) {
        const char *equals = strchr(strings->items[i], '=');
        if (equals == NULL)
            continue;
        _cleanup_free_ char *name = xstrndup(strings->items[i], (size_t)(equals - strings->items[i]));
        (void)json_object_set_new(object, name, json_text_string(equals + 1)); // not for a name in bad UTF-8
    }
    return object;
}

static json_t *write_list(const struct record_field *field, const void *member)
{
    const struct record_list *list = member;
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        (void)json_array_append_new(
            array, json_record_write(field->sub, (const char *)list->items + i * field->sub->size));
    return array;
}

static json_t *schema_number(int64_t min, int64_t max)
{
    return json_pack(
        "{s:s,s:I,s:I}", "type", "integer", "minimum", (json_int_t)min, "maximum", (json_int_t)max);
}

static json_t *schema_bool(const struct record_field *field)
{
    return json_pack("{s:s}", "type", "boolean");
}

static json_t *schema_u32(const struct record_field *field)
{
    return schema_number(0, UINT32_MAX);
}

static json_t *schema_i32(const struct record_field *field)
{
    return schema_number(INT32_MIN, INT32_MAX);
}

static json_t *schema_u64(const struct record_field *field)
{
    return schema_number(0, INT64_MAX);
}

static json_t *schema_i64(const struct record_field *field)
{
    return schema_number(INT64_MIN, INT64_MAX);
}

static json_t *schema_size(const struct record_field *field)
{
    return json_pack(
        "{s:[s,s],s:s}", "type", "integer", "string", "description", "bytes, or \"8G\", \"512M\"");
}

static json_t *schema_milli(const struct record_field *field)
{
    return json_pack(
        "{s:s,s:i,s:I}", "type", "number", "minimum", 0, "maximum", (json_int_t)(UINT32_MAX / 1000));
}

static json_t *schema_duration(const struct record_field *field)
{
    return json_pack(
        "{s:[s,s],s:s}", "type", "number", "string", "description", "seconds, or \"4h\", \"90m\"");
}

static json_t *schema_time(const struct record_field *field)
{
    return json_pack("{s:s,s:s}", "type", "string", "format", "date-time");
}

static json_t *schema_string(const struct record_field *field)
{
    return json_pack("{s:s,s:I}", "type", "string", "maxLength", (json_int_t)field->limit);
}

static json_t *schema_strings(const struct record_field *field)
{
    return json_pack("{s:s,s:{s:s}}", "type", "array", "items", "type", "string");
}

static json_t *schema_env(const struct record_field *field)
{
    return json_pack("{s:s,s:{s:s}}", "type", "object", "additionalProperties", "type", "string");
}

static json_t *schema_list(const struct record_field *field)
{
    return json_pack("{s:s,s:I,s:o}", "type", "array", "maxItems", (json_int_t)field->limit, "items",
        json_record_schema(field->sub));
}

static const struct {
    int (*read)(const struct record_field *field, json_t *value, void *member, struct error *err);
    json_t *(*write)(const struct record_field *field, const void *member);
    json_t *(*schema)(const struct record_field *field);
} kinds[] = {
    [RECORD_BOOL] = { read_bool, write_bool, schema_bool },
    [RECORD_U32] = { read_u32, write_u32, schema_u32 },
    [RECORD_I32] = { read_i32, write_i32, schema_i32 },
    [RECORD_U64] = { read_u64, write_u64, schema_u64 },
    [RECORD_I64] = { read_i64, write_i64, schema_i64 },
    [RECORD_SIZE] = { read_size, write_u64, schema_size },
    [RECORD_MILLI] = { read_milli, write_milli, schema_milli },
    [RECORD_DURATION] = { read_duration, write_duration, schema_duration },
    [RECORD_TIME] = { read_time, write_time, schema_time },
    [RECORD_STRING] = { read_string, write_string, schema_string },
    [RECORD_STRINGS] = { read_strings, write_strings, schema_strings },
    [RECORD_ENV] = { read_env, write_env, schema_env },
    [RECORD_LIST] = { read_list, write_list, schema_list },
};

/* Numbers with 0 as "absent", and empty lists. */
static bool is_absent(const struct record_field *field, const void *member)
{
    if (field->has_zero)
        return false;
    switch (field->kind) {
    case RECORD_U32:
    case RECORD_I32:
    case RECORD_MILLI: return *(const uint32_t *)member == 0;
    case RECORD_U64:
    case RECORD_I64:
    case RECORD_SIZE:
    case RECORD_DURATION: return *(const uint64_t *)member == 0;
    case RECORD_STRINGS: return ((const struct strings *)member)->count == 0;
    default: return false;
    }
}

json_t *json_record_answer(const struct record_field *field, const void *object)
{
    const void *member = (const char *)object + field->offset;
    return is_absent(field, member) ? json_null() : kinds[field->kind].write(field, member);
}

const char *json_record_answer_type(const struct record_field *field)
{
    switch (field->kind) {
    case RECORD_BOOL: return "boolean";
    case RECORD_MILLI:
    case RECORD_DURATION: return field->has_zero ? "number" : "number|null";
    case RECORD_TIME:
    case RECORD_STRING: return "string|null";
    case RECORD_STRINGS: return "array|null";
    case RECORD_LIST: return "array";
    case RECORD_ENV: return "object";
    default: return field->has_zero ? "integer" : "integer|null";
    }
}

static const struct record_field *find_field(const struct record_type *type, const char *name)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return &type->fields[i];
    return NULL;
}

static int unknown_key(const struct record_type *type, const char *key, struct error *err)
{
    _cleanup_free_ char *shown = text_escape(key, 60);
    (void)error_set(err, -EINVAL, "a %s has no key '%s'", type->name, shown);
    _cleanup_free_ const char **names = xcalloc(type->n_fields + 1, sizeof(*names));
    for (size_t i = 0; i < type->n_fields; i++)
        names[i] = type->fields[i].name;
    const char *nearest = text_nearest(key, names);
    return nearest != NULL ? error_hint(err, "did you mean '%s'?", nearest) : -EINVAL;
}

int json_record_read_field(const struct record_field *field, json_t *value, void *object, struct error *err)
{
    if (value == NULL || json_is_null(value))
        return 0;
    return kinds[field->kind].read(field, value, (char *)object + field->offset, err);
}

int json_record_read(const struct record_type *type, json_t *value, void *object, struct error *err)
{
    if (!json_is_object(value))
        return error_set(err, -EINVAL, "a %s must be an object, not %s", type->name, type_word(value));
    const char *key;
    json_t *item;
    json_object_foreach(value, key, item)
    {
        const struct record_field *field = find_field(type, key);
        if (field == NULL)
            return unknown_key(type, key, err);
        int r = json_record_read_field(field, item, object, err);
        if (r < 0)
            return r;
    }
    return 0;
}

json_t *json_record_write(const struct record_type *type, const void *object)
{
    json_t *value = json_object();
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        const void *member = (const char *)object + field->offset;
        (void)json_object_set_new(value, field->name, kinds[field->kind].write(field, member));
    }
    return value;
}

json_t *json_record_schema(const struct record_type *type)
{
    json_t *properties = json_object();
    for (size_t i = 0; i < type->n_fields; i++)
        (void)json_object_set_new(
            properties, type->fields[i].name, kinds[type->fields[i].kind].schema(&type->fields[i]));
    return json_pack(
        "{s:s,s:b,s:o}", "type", "object", "additionalProperties", false, "properties", properties);
}
