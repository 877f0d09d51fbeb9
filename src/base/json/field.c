/* SPDX-License-Identifier: MIT */
/* The server may be older or newer than this program: a missing member must not cause a crash. */
#include "base/json/field.h"

#include <string.h>

#include "base/memory.h"
#include "base/strings.h"

#define SHOWN_MAX 4096

const char *field_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int64_t field_integer(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? (int64_t)json_number_value(value) : otherwise;
}

double field_number(const json_t *object, const char *name, double otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

bool field_is(const json_t *object, const char *name, const char *text)
{
    const char *value = field_text(object, name);
    return value != NULL && strcmp(value, text) == 0;
}

bool field_is_known(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return value != NULL && !json_is_null(value);
}

bool field_measured(const json_t *object, const char *name, double *ret)
{
    *ret = field_number(object, name, 0);
    return json_is_number(json_object_get(object, name));
}

char *field_shown(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_string(value))
        return text_escape(json_string_value(value), SHOWN_MAX);
    if (json_is_integer(value))
        return xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value))
        return xasprintf("%g", json_real_value(value));
    if (json_is_boolean(value))
        return xstrdup(json_is_true(value) ? "yes" : "no");
    return xstrdup("-");
}
