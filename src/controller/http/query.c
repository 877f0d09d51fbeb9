/* SPDX-License-Identifier: MIT */
/* Decoding follows RFC 3986, with '+' for a space as in browsers' forms; NUL is refused. */
#include "controller/http/query.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "wire/limits.h"

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int decode(const char *text, size_t length, char **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (size_t i = 0; i < length; i++) {
        char c = text[i] == '+' ? ' ' : text[i];
        if (c == '%') {
            int high = i + 2 < length ? digit(text[i + 1]) : -1;
            int low = i + 2 < length ? digit(text[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return error_set(err, -EINVAL, "query: '%.20s' is not a percent-encoded byte", text + i);
            c = (char)(high * 16 + low);
            i += 2;
        }
        buffer_append(&out, &c, 1);
    }
    *ret = buffer_take(&out);
    return 0;
}

static int add_pair(struct query *query, const char *pair, size_t length, struct error *err)
{
    if (length == 0)
        return 0;
    if (query->names.count >= LIMIT_QUERY_PARAMETERS)
        return error_set(err, -EINVAL, "the query has more than %d parameters", LIMIT_QUERY_PARAMETERS);
    const char *equals = memchr(pair, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - pair) : length;
    const char *value_start = equals != NULL ? equals + 1 : pair + length;
    _cleanup_free_ char *name = NULL, *value = NULL;
    int r = decode(pair, name_length, &name, err);
    if (r == 0)
        r = decode(value_start, (size_t)(pair + length - value_start), &value, err);
    if (r < 0)
        return r;
    strings_take(&query->names, take_ptr(name));
    strings_take(&query->values, take_ptr(value));
    return 0;
}

int query_parse(const char *target, char **ret_path, struct query *ret, struct error *err)
{
    if (target[0] != '/')
        return error_set(err, -EINVAL, "the request must name a path that begins with '/'");
    struct query query = { 0 };
    const char *at = target + strcspn(target, "?#");
    size_t path_length = (size_t)(at - target);
    while (*at == '?' || *at == '&') {
        size_t length = strcspn(++at, "&#");
        int r = add_pair(&query, at, length, err);
        if (r < 0) {
            query_clear(&query);
            return r;
        }
        at += length;
    }
    *ret_path = xstrndup(target, path_length);
    *ret = query;
    return 0;
}

void query_clear(struct query *query)
{
    strings_clear(&query->names);
    strings_clear(&query->values);
}

const char *query_get(const struct query *query, const char *name)
{
    for (size_t i = 0; i < query->names.count; i++)
        if (strcmp(query->names.items[i], name) == 0)
            return query->values.items[i];
    return NULL;
}

int query_get_flag(const struct query *query, const char *name, bool *ret, struct error *err)
{
    const char *value = query_get(query, name);
    if (value != NULL && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return error_set(err, -EINVAL, "%s: '%.60s' is neither 0 nor 1", name, value);
    *ret = value != NULL && value[0] == '1';
    return 0;
}

static bool is_known(const char *name, const char *const *known)
{
    for (; *known != NULL; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}

int query_check(const struct query *query, const char *const *known, struct error *err)
{
    for (size_t i = 0; i < query->names.count; i++) {
        const char *name = query->names.items[i];
        if (!is_known(name, known)) {
            _cleanup_free_ char *shown = text_escape(name, 60);
            const char *nearest = text_nearest(name, known);
            (void)error_set(err, -EINVAL, "unknown query parameter '%s'", shown);
            return nearest != NULL ? error_hint(err, "did you mean '%s'?", nearest) : -EINVAL;
        }
        for (size_t k = 0; k < i; k++)
            if (strcmp(query->names.items[k], name) == 0)
                return error_set(err, -EINVAL, "the query parameter '%s' was given twice", name);
    }
    return 0;
}
