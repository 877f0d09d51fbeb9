/* SPDX-License-Identifier: MIT */
/* The remaining indexes of an array are a text of ranges: short, however many elements there are. */
#include "job/array.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define NUMBER_DIGITS_MAX 10

static int bad_syntax(const char *text, struct error *err)
{
    (void)error_set(err, -EINVAL, "array: '%.60s' is not a list of indexes", text);
    return error_hint(err, "write 0-9, 1,3,5-7, 0-99:2 (every second one) or 0-99%%8 (8 at a time)");
}

/* Reads a number at *p and moves behind it; false when there is none or it is too long to be one. */
static bool take_number(const char **p, uint64_t *ret)
{
    const char *start = *p;
    for (*ret = 0; isdigit((unsigned char)**p) && *p - start < NUMBER_DIGITS_MAX; (*p)++)
        *ret = *ret * 10 + (uint64_t)(**p - '0');
    return *p != start && !isdigit((unsigned char)**p);
}

static int take_range(const char **p, const char *text, struct array_range *ret, struct error *err)
{
    uint64_t first = 0, last = 0, step = 1;
    if (!take_number(p, &first))
        return bad_syntax(text, err);
    last = first;
    if (**p == '-') {
        (*p)++;
        if (!take_number(p, &last))
            return bad_syntax(text, err);
        if (**p == ':') {
            (*p)++;
            if (!take_number(p, &step))
                return bad_syntax(text, err);
        }
    }
    if (last < first)
        return error_set(err, -EINVAL, "array: the range %" PRIu64 "-%" PRIu64 " is descending", first, last);
    if (last > ARRAY_INDEX_MAX)
        return error_set(err, -ERANGE, "array: index %" PRIu64 " is above %u", last, ARRAY_INDEX_MAX);
    if (step == 0 || step > ARRAY_INDEX_MAX)
        return error_set(
            err, -ERANGE, "array: the step %" PRIu64 " is outside 1 to %u", step, ARRAY_INDEX_MAX);
    *ret = (struct array_range){
        .first = (uint32_t)first, .last = (uint32_t)(last - (last - first) % step), .step = (uint32_t)step
    };
    return 0;
}

static uint32_t range_size(const struct array_range *range)
{
    return (range->last - range->first) / range->step + 1;
}

static int add_range(struct array *array, const struct array_range *range, struct error *err)
{
    const struct array_range *before = array->count > 0 ? &array->ranges[array->count - 1] : NULL;
    if (before != NULL && range->first <= before->last) {
        (void)error_set(err, -EINVAL, "array: index %u comes after %u", range->first, before->last);
        return error_hint(err, "write the indexes in ascending order, each once");
    }
    if ((uint64_t)array_size(array) + range_size(range) > ARRAY_MAX)
        return error_set(err, -E2BIG, "array: more than %u elements", ARRAY_MAX);
    array->ranges = xreallocarray(array->ranges, array->count + 1, sizeof(*array->ranges));
    array->ranges[array->count++] = *range;
    return 0;
}

static int take_limit(const char **p, const char *text, uint32_t *ret, struct error *err)
{
    uint64_t limit = 0;
    (*p)++;
    if (!take_number(p, &limit))
        return bad_syntax(text, err);
    if (limit == 0 || limit > ARRAY_MAX)
        return error_set(err, -ERANGE, "array: %" PRIu64 " at a time is outside 1 to %u", limit, ARRAY_MAX);
    *ret = (uint32_t)limit;
    return 0;
}

int parse_array(const char *text, struct array *ret, struct error *err)
{
    _cleanup_(array_clear) struct array array = { 0 };
    const char *p = text;
    int r = 0;
    do {
        struct array_range range;
        p += p != text; // the comma
        r = take_range(&p, text, &range, err);
        if (r == 0)
            r = add_range(&array, &range, err);
    } while (r == 0 && *p == ',');
    if (r == 0 && *p == '%')
        r = take_limit(&p, text, &array.limit, err);
    if (r == 0 && *p != '\0')
        r = bad_syntax(text, err);
    *ret = r == 0 ? array : (struct array){ 0 };
    if (r == 0)
        array = (struct array){ 0 };
    return r;
}

void array_clear(struct array *array)
{
    free(array->ranges);
    *array = (struct array){ 0 };
}

uint32_t array_size(const struct array *array)
{
    uint32_t size = 0;
    for (size_t i = 0; i < array->count; i++)
        size += range_size(&array->ranges[i]);
    return size;
}

bool array_first(const char *text, uint32_t *ret)
{
    uint64_t first = 0;
    if (!take_number(&text, &first) || first > ARRAY_INDEX_MAX)
        return false;
    *ret = (uint32_t)first;
    return true;
}

static void write_range(struct buffer *out, uint32_t first, uint32_t last, uint32_t step)
{
    if (out->length > 0)
        buffer_append_text(out, ",");
    buffer_printf(out, "%u", first);
    if (last > first)
        buffer_printf(out, "-%u", last);
    if (last > first && step > 1)
        buffer_printf(out, ":%u", step);
}

static bool is_in_range(const struct array_range *range, uint32_t index)
{
    return index >= range->first && index <= range->last && (index - range->first) % range->step == 0;
}

char *array_without(const char *text, uint32_t index)
{
    _cleanup_(array_clear) struct array array = { 0 };
    _cleanup_buffer_ struct buffer out = { 0 };
    bool is_found = false;
    (void)parse_array(text, &array, NULL);
    for (size_t i = 0; i < array.count; i++) {
        const struct array_range *range = &array.ranges[i];
        if (!is_in_range(range, index)) {
            write_range(&out, range->first, range->last, range->step);
            continue;
        }
        is_found = true;
        if (index > range->first)
            write_range(&out, range->first, index - range->step, range->step);
        if (index < range->last)
            write_range(&out, index + range->step, range->last, range->step);
    }
    return is_found ? buffer_take(&out) : NULL;
}

char *array_indexes(const char *text)
{
    _cleanup_(array_clear) struct array array = { 0 };
    _cleanup_buffer_ struct buffer out = { 0 };
    if (parse_array(text, &array, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < array.count; i++)
        write_range(&out, array.ranges[i].first, array.ranges[i].last, array.ranges[i].step);
    return buffer_take(&out);
}
