/* SPDX-License-Identifier: MIT */
#include "base/hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/parse.h"

#define DIGITS_MAX 9 // of a number in a name; longer ones are text

/* --- expand --- */

static int add_name(struct strings *ret, char *name, struct error *err)
{
    strings_take(ret, name);
    return ret->count <= HOSTLIST_MAX
               ? 0
               : error_set(err, -E2BIG, "the list has more than %u names", HOSTLIST_MAX);
}

static int expand_item(const char *item, struct strings *ret, struct error *err);

/* One "3" or "01-12" between `length` bytes of text and what follows the brackets. */
static int expand_range(
    const char *item, size_t length, char *range, const char *rest, struct strings *ret, struct error *err)
{
    char *dash = strchr(range, '-');
    int64_t first = 0, last = 0;
    size_t width = dash != NULL ? (size_t)(dash - range) : strlen(range);
    if (dash != NULL)
        *dash++ = '\0';
    int r = parse_integer(range, "a number of a host list", 0, INT32_MAX, &first, err);
    if (r == 0)
        r = parse_integer(
            dash != NULL ? dash : range, "a number of a host list", first, INT32_MAX, &last, err);
    for (int64_t i = first; r == 0 && i <= last; i++) {
        _cleanup_free_ char *name = xasprintf("%.*s%0*" PRId64 "%s", (int)length, item, (int)width, i, rest);
        r = expand_item(name, ret, err);
    }
    return r;
}

static int expand_item(const char *item, struct strings *ret, struct error *err)
{
    const char *open = strchr(item, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    if (open == NULL && strchr(item, ']') == NULL)
        return item[0] == '\0' ? 0 : add_name(ret, xstrdup(item), err);
    if (close == NULL)
        return error_set(err, -EINVAL, "'%.60s' has an open bracket", item);
    _cleanup_free_ char *ranges = xstrndup(open + 1, (size_t)(close - open - 1));
    char *rest = ranges;
    int r = 0;
    for (char *range = NULL; r == 0 && (range = strsep(&rest, ",")) != NULL;)
        r = expand_range(item, (size_t)(open - item), range, close + 1, ret, err);
    return r;
}

/* The end of the item that begins here: a comma or blank outside of brackets. */
static const char *item_end(const char *text)
{
    bool is_inside = false;
    const char *p = text;
    for (; *p != '\0' && (is_inside || (*p != ',' && !isspace((unsigned char)*p))); p++)
        is_inside = *p == '[' || (is_inside && *p != ']');
    return p;
}

int hostlist_expand(const char *text, struct strings *ret, struct error *err)
{
    for (const char *p = text; *p != '\0';) {
        const char *end = item_end(p);
        _cleanup_free_ char *item = xstrndup(p, (size_t)(end - p));
        int r = expand_item(item, ret, err);
        if (r < 0)
            return r;
        p = *end == '\0' ? end : end + 1;
    }
    return 0;
}

/* --- compress --- */

struct host {
    const char *name;
    size_t prefix; // bytes before the number at its end; all of them when it has none
    int digits;    // of the number
    bool has_zero; // the number begins with 0, and has more digits
    int64_t number;
    bool is_done;
};

static struct host split(const char *name)
{
    size_t length = strlen(name), prefix = length;
    while (prefix > 0 && length - prefix < DIGITS_MAX && isdigit((unsigned char)name[prefix - 1]))
        prefix--;
    bool has_zero = prefix < length && name[prefix] == '0' && length - prefix > 1;
    return (struct host){ .name = name,
        .prefix = prefix,
        .digits = (int)(length - prefix),
        .has_zero = has_zero,
        .number = prefix < length ? strtoll(name + prefix, NULL, 10) : -1 };
}

static bool is_prefix_same(const struct host *a, const struct host *b)
{
    return a->number >= 0 && b->number >= 0 && a->prefix == b->prefix &&
           strncmp(a->name, b->name, a->prefix) == 0;
}

/* The number of digits of the numbers that can share an item with that of `hosts`; 0: any, without leading
 * zeros. Numbers with and without leading zeros share an item if all have the same length: 08, 09, 10. */
static int find_width(const struct host *hosts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!hosts[i].is_done && hosts[i].has_zero && hosts[i].digits == hosts->digits &&
            is_prefix_same(hosts, &hosts[i]))
            return hosts->digits;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

static void add_numbers(struct buffer *out, const int64_t *numbers, size_t count, int width)
{
    for (size_t i = 0, begin = 0; i < count; i = begin) {
        while (begin + 1 < count && numbers[begin + 1] <= numbers[begin] + 1)
            begin++;
        buffer_printf(out, "%s%0*" PRId64, i > 0 ? "," : "", width, numbers[i]);
        if (numbers[begin] > numbers[i])
            buffer_printf(out, "-%0*" PRId64, width, numbers[begin]);
        begin++;
    }
}

static void add_group(struct buffer *out, struct host *hosts, size_t first, size_t count)
{
    _cleanup_free_ int64_t *numbers = xcalloc(count, sizeof(*numbers));
    size_t found = 0;
    const int width = find_width(&hosts[first], count - first);
    bool is_many = false;
    for (size_t i = first; i < count; i++) {
        bool is_alike = is_prefix_same(&hosts[first], &hosts[i]) &&
                        (width > 0 ? hosts[i].digits == width : !hosts[i].has_zero);
        if (hosts[i].is_done || (i != first && !is_alike))
            continue;
        hosts[i].is_done = true;
        is_many = is_many || hosts[i].number != hosts[first].number;
        numbers[found++] = hosts[i].number;
    }
    buffer_printf(out, "%s", out->length > 0 ? "," : "");
    if (!is_many) {
        buffer_append_text(out, hosts[first].name);
        return;
    }
    qsort(numbers, found, sizeof(*numbers), by_number);
    buffer_printf(out, "%.*s[", (int)hosts[first].prefix, hosts[first].name);
    add_numbers(out, numbers, found, width);
    buffer_append_text(out, "]");
}

char *hostlist_compress(const struct strings *names)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ struct host *hosts = xcalloc(names->count + 1, sizeof(*hosts));
    for (size_t i = 0; i < names->count; i++)
        hosts[i] = split(names->items[i]);
    for (size_t i = 0; i < names->count; i++) {
        for (size_t k = 0; hosts[i].number < 0 && k < i && !hosts[i].is_done; k++)
            hosts[i].is_done = strcmp(hosts[i].name, hosts[k].name) == 0;
        if (!hosts[i].is_done)
            add_group(&out, hosts, i, names->count);
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

int hostlist_expand_once(const char *text, struct strings *ret, struct error *err)
{
    _cleanup_strings_ struct strings all = { 0 };
    int r = hostlist_expand(text, &all, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *list = hostlist_compress(&all);
    return hostlist_expand(list, ret, err);
}
