/* SPDX-License-Identifier: MIT */
/*
 * Unlike hostlist_compress(), which lists each host once, this keeps the order and repetitions, because
 * machine files have both: only neighbours share brackets. "01" and "1" are different numbers, and shorter
 * ones come first.
 */
#include "compat/slurm/control/scontrol_hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/strings.h"

#define DIGITS_MAX 9 // of a number; the name is text if there are more

/* The end of a name that is a number; empty: none. */
static const char *number_of(const char *name)
{
    const char *number = name + strlen(name);
    while (number > name && isdigit((unsigned char)number[-1]))
        number--;
    return strlen(number) > DIGITS_MAX ? number + strlen(number) : number;
}

static long value_of(const char *name)
{
    return strtol(number_of(name), NULL, 10);
}

/* Whether both are written as in a range: "2" and "10", "02" and "10", but not "02" and "2". */
static bool are_alike(const char *a, const char *b)
{
    size_t wide_a = strlen(a), wide_b = strlen(b);
    return wide_a == wide_b || (wide_a > wide_b ? a : b)[0] != '0';
}

static int compare(const char *a, const char *b)
{
    const char *number_a = number_of(a), *number_b = number_of(b);
    size_t length_a = (size_t)(number_a - a), length_b = (size_t)(number_b - b);
    int r = strncmp(a, b, length_a < length_b ? length_a : length_b);
    if (r != 0 || length_a != length_b)
        return r != 0 ? r : length_a < length_b ? -1 : 1;
    if (!are_alike(number_a, number_b))
        return strlen(number_a) < strlen(number_b) ? -1 : 1;
    return value_of(a) < value_of(b) ? -1 : value_of(a) > value_of(b);
}

static int by_name(const void *a, const void *b)
{
    return compare(*(char *const *)a, *(char *const *)b);
}

static bool share_brackets(const char *a, const char *b)
{
    size_t length = (size_t)(number_of(a) - a);
    return *number_of(a) != '\0' && *number_of(b) != '\0' && length == (size_t)(number_of(b) - b) &&
           strncmp(a, b, length) == 0;
}

static bool is_next(const char *a, const char *b)
{
    return are_alike(number_of(a), number_of(b)) && value_of(b) == value_of(a) + 1;
}

/* "1-3,7" of `count` names that differ only in their number. */
static void add_numbers(struct buffer *out, char *const *names, size_t count)
{
    for (size_t i = 0, last = 0; i < count; i = last + 1) {
        for (last = i; last + 1 < count && is_next(names[last], names[last + 1]);)
            last++;
        buffer_printf(out, "%s%s", i > 0 ? "," : "", number_of(names[i]));
        if (last > i)
            buffer_printf(out, "-%s", number_of(names[last]));
    }
}

int scontrol_hostlist(const char *list, bool is_sorted, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_buffer_ struct buffer out = { 0 };
    int r = list == NULL ? -EINVAL : hostlist_expand(list, &names, err);
    if (r < 0)
        return error_set(err, r, "Invalid hostlist: %.200s", list != NULL ? list : "(null)");
    if (is_sorted && names.count > 0)
        qsort(names.items, names.count, sizeof(names.items[0]), by_name);
    for (size_t i = 0, next = 0; i < names.count; i = next) {
        for (next = i + 1; next < names.count && share_brackets(names.items[i], names.items[next]);)
            next++;
        const char *first = names.items[i];
        buffer_append_text(&out, i > 0 ? "," : "");
        if (next == i + 1) {
            buffer_append_text(&out, first);
            continue;
        }
        buffer_printf(&out, "%.*s[", (int)(number_of(first) - first), first);
        add_numbers(&out, names.items + i, next - i);
        buffer_append_text(&out, "]");
    }
    (void)puts(buffer_text(&out));
    return 0;
}
