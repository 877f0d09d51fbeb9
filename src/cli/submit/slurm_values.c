/* SPDX-License-Identifier: MIT */
#include "cli/submit/slurm_values.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "job/array.h"
#include "job/ask.h"

#define MINUTE_S      60
#define HOUR_S        3600
#define DAY_S         86400
#define TIME_PART_MAX 10000000 // minutes, hours or days; far above any limit
#define MIB_SHIFT     20

int slurm_parse_time(const char *what, const char *value, int64_t *ret_seconds, struct error *err)
{
    static const int64_t units[2][3] = { { MINUTE_S, 1, 0 }, { HOUR_S, MINUTE_S, 1 } };
    int64_t parts[3] = { 0 }, days = 0, seconds = 0;
    size_t count = 0;
    const char *dash = strchr(value, '-');
    _cleanup_free_ char *copy = xstrdup(dash == NULL ? value : dash + 1);
    char *rest = copy;
    *ret_seconds = SLURM_NO_LIMIT;
    if (strcasecmp(value, "unlimited") == 0 || strcasecmp(value, "infinite") == 0 || strcmp(value, "-1") == 0)
        return 0;
    if (dash != NULL) {
        _cleanup_free_ char *first = xstrndup(value, (size_t)(dash - value));
        int r = parse_integer(first, what, 0, TIME_PART_MAX, &days, err);
        if (r < 0)
            return r;
    }
    for (char *part = NULL; (part = strsep(&rest, ":")) != NULL; count++) {
        int r = count == 3 ? error_set(err, -EINVAL, "%s: '%.60s' has too many parts", what, value)
                           : parse_integer(part, what, 0, TIME_PART_MAX, &parts[count], err);
        if (r < 0)
            return r;
    }
    bool is_hours = dash != NULL || count == 3;
    for (size_t i = 0; i < 3; i++)
        seconds += parts[i] * units[is_hours][i];
    *ret_seconds = days * DAY_S + seconds; // zero in any form is SLURM_NO_LIMIT
    return 0;
}

int slurm_parse_gpus(
    const char *what, const char *value, int64_t *ret_count, char **ret_model, struct error *err)
{
    const char *colon = strrchr(value, ':');
    const char *number = colon != NULL ? colon + 1 : value;
    bool has_number = isdigit((unsigned char)number[0]);
    size_t length = colon != NULL ? (size_t)(colon - value) : 0;
    *ret_count = 1;
    if (!has_number && (colon != NULL || !isalpha((unsigned char)number[0]))) {
        (void)error_set(err, -EINVAL, "Invalid generic resource (gres) specification");
        return error_hint(err, "%s: '%.60s' is not TYPE:NUMBER", what, value);
    }
    if (has_number) {
        int r = parse_integer(number, what, 0, ASK_GPUS_MAX, ret_count, err);
        if (r < 0)
            return r;
    } else {
        length = strlen(value);
    }
    *ret_model = length > 0 ? xstrndup(value, length) : NULL;
    return 0;
}

/* Adds GPUs to those earlier in the list. All must have the same model. */
static int add_gpus(const char *item, int64_t *count, char **model, struct error *err)
{
    _cleanup_free_ char *one = NULL;
    int64_t number = 0;
    int r = slurm_parse_gpus("--gres", item[3] == '\0' ? "1" : item + 4, &number, &one, err);
    if (r < 0)
        return r;
    if (one != NULL && *model != NULL && strcasecmp(one, *model) != 0)
        return error_set(err, -ENOTSUP, "--gres: a job has GPUs of one type, and not of both %.60s and %.60s",
            *model, one);
    *count += number;
    if (*model == NULL)
        *model = take_ptr(one);
    return 0;
}

/* "lscratch:10" is refused; "craynetwork:0" requests nothing. */
static int skip_other(const char *item, struct error *err)
{
    const char *colon = strrchr(item, ':');
    if (colon != NULL && colon > item && colon[1] != '\0' && strspn(colon + 1, "0") == strlen(colon + 1))
        return 0;
    (void)error_set(err, -EINVAL, "Invalid generic resource (gres) specification");
    return error_hint(err,
        "--gres: '%.60s' is not gpu, gpu:NUMBER or gpu:TYPE:NUMBER; there is no other generic resource",
        item);
}

int slurm_parse_gres(const char *value, int64_t *ret_count, char **ret_model, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(value), *model = NULL;
    char *rest = copy;
    int64_t count = 0;
    int r = 0;
    if (strcasecmp(value, "none") == 0)
        return slurm_parse_gpus("--gres", "0", ret_count, ret_model, err);
    for (char *item = NULL; r == 0 && (item = strsep(&rest, ",")) != NULL;) {
        if (strncmp(item, "gres:", 5) == 0 || strncmp(item, "gres/", 5) == 0)
            item += 5;
        bool is_gpu = strncmp(item, "gpu", 3) == 0 && (item[3] == '\0' || item[3] == ':' || item[3] == '=');
        r = is_gpu ? add_gpus(item, &count, &model, err) : skip_other(item, err);
    }
    if (r < 0)
        return r;
    *ret_count = count;
    *ret_model = take_ptr(model);
    return 0;
}

int slurm_parse_memory(const char *what, const char *value, uint64_t *ret_bytes, struct error *err)
{
    static const char units[] = "KMGT";
    size_t digits = strspn(value, "0123456789");
    const char *unit =
        value[digits] != '\0' ? strchr(units, toupper((unsigned char)value[digits])) : units + 1;
    const char *end = value + digits + (value[digits] != '\0');
    int64_t number = 0;
    _cleanup_free_ char *text = xstrndup(value, digits);
    if (unit == NULL || digits == 0 || (*end != '\0' && strcasecmp(end, "B") != 0))
        return error_set(err, -EINVAL, "%s: '%.60s' is not a size, such as 4G", what, value);
    int r = parse_integer(text, what, 0, INT32_MAX, &number, err);
    if (r == 0)
        *ret_bytes = (uint64_t)number << (10 * (unsigned)(unit - units + 1));
    return r;
}

static int by_value(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

/* Appends the indexes of one part, "4" or "1-9:2"; false if it is neither, or there are too many. */
static bool add_indexes(const char *part, uint32_t *indexes, size_t *count)
{
    struct array one = { 0 };
    if (parse_array(part, &one, NULL) < 0)
        return false;
    bool fits = one.limit == 0 && *count + array_size(&one) <= ARRAY_MAX;
    for (size_t i = 0; fits && i < one.count; i++)
        for (uint64_t k = one.ranges[i].first; k <= one.ranges[i].last;
             k += one.ranges[i].step > 0 ? one.ranges[i].step : 1)
            indexes[(*count)++] = (uint32_t)k;
    array_clear(&one);
    return fits;
}

static char *join_indexes(const uint32_t *indexes, size_t count, const char *limit)
{
    struct buffer out = { 0 };
    for (size_t i = 0, last = 0; i < count; i = last + 1) {
        for (last = i; last + 1 < count && indexes[last + 1] <= indexes[last] + 1; last++) {
        }
        buffer_printf(&out, "%s%u", i > 0 ? "," : "", indexes[i]);
        if (indexes[last] > indexes[i])
            buffer_printf(&out, "-%u", indexes[last]);
    }
    buffer_append_text(&out, limit);
    return buffer_take(&out);
}

/* Reads "%4" behind the list as Slurm does: a number, ignoring what follows it; none or 0: no limit. */
static char *read_limit(const char *text)
{
    size_t digits = text[0] == '%' ? strspn(text + 1, "0123456789") : 0;
    bool is_none = digits == 0 || strspn(text + 1, "0") == digits;
    return is_none ? xstrdup("") : xstrndup(text, digits + 1);
}

/* The parts of "1, 3,,5" without blanks and empty ones, or of "[1-3]". */
static char *read_list(const char *text, size_t length)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    bool is_bracketed = length > 1 && text[0] == '[' && text[length - 1] == ']';
    _cleanup_free_ char *copy = is_bracketed ? xstrndup(text + 1, length - 2) : xstrndup(text, length);
    char *rest = copy;
    for (char *part = NULL; (part = strsep(&rest, ", ")) != NULL;)
        if (part[0] != '\0')
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", part);
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

char *slurm_array_indexes(const char *value)
{
    size_t length = strcspn(value, "%");
    _cleanup_free_ char *list = read_list(value, length), *limit = read_limit(value + length);
    _cleanup_free_ char *plain = xasprintf("%s%s", list, list[0] != '\0' ? limit : value + length);
    if (plain[0] == '\0')
        return take_ptr(plain);
    struct array whole = { 0 };
    int r = parse_array(list, &whole, NULL);
    array_clear(&whole);
    if (r == 0)
        return take_ptr(plain);
    _cleanup_free_ uint32_t *indexes = xcalloc(ARRAY_MAX, sizeof(*indexes));
    size_t count = 0;
    char *rest = list;
    for (char *part = NULL; (part = strsep(&rest, ",")) != NULL;)
        if (!add_indexes(part, indexes, &count))
            return xstrdup(value);
    qsort(indexes, count, sizeof(*indexes), by_value);
    return join_indexes(indexes, count, limit);
}

char *slurm_path(const char *value)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    const struct passwd *user = strstr(value, "%u") != NULL ? getpwuid(geteuid()) : NULL;
    bool is_literal = strchr(value, '\\') != NULL; // a backslash disables all codes
    for (const char *p = value; *p != '\0'; p++) {
        size_t width = *p == '%' ? strspn(p + 1, "0123456789") : 0;
        char letter = *p == '%' ? p[1 + width] : '\0';
        if (is_literal || letter == '\0') {
            if (!is_literal || *p != '\\')
                buffer_printf(&out, "%s%c", is_literal && *p == '%' ? "%" : "", *p);
            continue;
        }
        switch (letter) {
        case 'x': buffer_append_text(&out, "%n"); break;
        case 'N': buffer_append_text(&out, "%h"); break;
        case 'u': buffer_append_text(&out, user != NULL ? user->pw_name : "nobody"); break;
        case 's': buffer_append_text(&out, "batch"); break;
        case 'J': buffer_printf(&out, "%%%.*sj", (int)width, p + 1); break;
        case 'n':
        case 't': buffer_printf(&out, "%%%.*sr", (int)width, p + 1); break;
        case 'h':
        case 'r': buffer_printf(&out, "%%%%%c", letter); break;
        default: buffer_append(&out, p, width + 2); break;
        }
        p += width + 1;
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}
