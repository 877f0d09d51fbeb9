/* SPDX-License-Identifier: MIT */
/* Parses text from users: every rejection names the option, the value and what is accepted. */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int parse_integer(
    const char *text, const char *what, int64_t min, int64_t max, int64_t *ret, struct error *err)
{
    char *end = NULL;
    errno = 0;
    bool is_numeric = isdigit((unsigned char)text[0]) || (text[0] == '-' && isdigit((unsigned char)text[1]));
    long long value = is_numeric ? strtoll(text, &end, 10) : 0;
    if (!is_numeric || *end != '\0')
        return error_set(err, -EINVAL, "%s: '%.60s' is not a whole number", what, text);
    if (errno == ERANGE || value < min || value > max)
        return error_set(err, -ERANGE, "%s: %.60s is outside %" PRId64 " to %" PRId64, what, text, min, max);
    *ret = value;
    return 0;
}

static int size_shift(const char *unit)
{
    static const struct {
        const char *unit;
        int shift;
    } units[] = {
        { "", 20 },
        { "B", 0 },
        { "K", 10 },
        { "KB", 10 },
        { "KiB", 10 },
        { "M", 20 },
        { "MB", 20 },
        { "MiB", 20 },
        { "G", 30 },
        { "GB", 30 },
        { "GiB", 30 },
        { "T", 40 },
        { "TB", 40 },
        { "TiB", 40 },
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcasecmp(unit, units[i].unit) == 0)
            return units[i].shift;
    return -1;
}

int parse_size(const char *text, const char *what, uint64_t *ret_bytes, struct error *err)
{
    char *end = NULL;
    bool is_numeric = isdigit((unsigned char)text[0]);
    double value = is_numeric ? strtod(text, &end) : 0;
    int shift = is_numeric && strspn(text, "0123456789.") == (size_t)(end - text) ? size_shift(end) : -1;
    if (shift < 0) {
        (void)error_set(err, -EINVAL, "%s: '%.60s' is not a size", what, text);
        return error_hint(err, "write 8G, 512M or a number of MiB");
    }
    double bytes = value * (double)(1ULL << shift);
    if (bytes < 1 || bytes > (double)(1ULL << 50))
        return error_set(err, -ERANGE, "%s: %.60s is outside 1 byte to 1024 TiB", what, text);
    *ret_bytes = (uint64_t)bytes;
    return 0;
}

static int64_t duration_unit(const char *unit)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {
        { "", 1000 },
        { "ms", 1 },
        { "s", 1000 },
        { "m", 60000 },
        { "h", 3600000 },
        { "d", 86400000 },
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].unit) == 0)
            return units[i].ms;
    return -1;
}

#define DURATION_MAX_DAYS 36500
#define DURATION_MAX_MS   (DURATION_MAX_DAYS * 86400000LL)

/* D-HH:MM:SS, HH:MM:SS or MM:SS. */
static int64_t clock_form(const char *text)
{
    unsigned long part[4] = { 0 }; // days, hours, minutes, seconds
    char *end = NULL;
    const char *p = text;
    if (strchr(text, '-') != NULL) {
        part[0] = strtoul(p, &end, 10);
        if (*end != '-')
            return -1;
        p = end + 1;
    }
    unsigned long colon[3] = { 0 };
    size_t n = 0;
    for (;;) {
        if (!isdigit((unsigned char)*p))
            return -1;
        colon[n++] = strtoul(p, &end, 10);
        p = end;
        if (*p != ':' || n == 3)
            break;
        p++;
    }
    if (*p != '\0' || n < 2)
        return -1;
    for (size_t i = 0; i < n; i++)
        part[4 - n + i] = colon[i];
    if (part[0] > DURATION_MAX_DAYS || part[1] > 876000 || part[2] > 52560000 || part[3] > 3153600000UL)
        return -1;
    return (int64_t)(((part[0] * 24 + part[1]) * 60 + part[2]) * 60 + part[3]) * 1000;
}

/* "1h30m", "1d00h", as durations are printed: each unit once, the larger ones first; -1 for any other text.
 */
static int64_t compound_form(const char *text)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 } };
    int64_t sum = 0;
    size_t next = 0;
    while (*text != '\0') {
        size_t digits = strspn(text, "0123456789"), i = next;
        while (i < sizeof(units) / sizeof(units[0]) && text[digits] != units[i].name[0])
            i++;
        if (digits == 0 || digits > 9 || i == sizeof(units) / sizeof(units[0]))
            return -1;
        sum += strtoll(text, NULL, 10) * units[i].ms;
        if (sum > DURATION_MAX_MS)
            return -1;
        text += digits + 1;
        next = i + 1;
    }
    return sum;
}

int parse_duration(const char *text, const char *what, int64_t *ret_ms, struct error *err)
{
    int64_t ms = -1;
    if (isdigit((unsigned char)text[0]) && (strchr(text, ':') != NULL || strchr(text, '-') != NULL)) {
        ms = clock_form(text);
    } else if (isdigit((unsigned char)text[0])) {
        char *end = NULL;
        double value = strtod(text, &end);
        int64_t unit = strspn(text, "0123456789.") == (size_t)(end - text) ? duration_unit(end) : -1;
        if (unit > 0 && value * (double)unit > (double)DURATION_MAX_MS)
            return error_set(err, -ERANGE, "%s: %.60s is longer than %dd", what, text, DURATION_MAX_DAYS);
        if (unit > 0)
            ms = (int64_t)(value * (double)unit);
        else
            ms = compound_form(text);
    }
    if (ms < 0) {
        (void)error_set(err, -EINVAL, "%s: '%.60s' is not a duration", what, text);
        return error_hint(err, "write 90m, 4h, 1:30:00, 2-00:00:00 or a number of seconds");
    }
    *ret_ms = ms;
    return 0;
}

static int add_id(
    const char *what, uint32_t id, uint32_t max_id, uint32_t **ids, size_t *count, struct error *err)
{
    if (id > max_id)
        return error_set(err, -ERANGE, "%s: id %u is above %u", what, id, max_id);
    for (size_t i = 0; i < *count; i++)
        if ((*ids)[i] == id)
            return error_set(err, -EINVAL, "%s: id %u is listed twice", what, id);
    *ids = xreallocarray(*ids, *count + 1, sizeof(uint32_t));
    (*ids)[(*count)++] = id;
    return 0;
}

int parse_id_list(const char *text, const char *what, uint32_t max_id, uint32_t **ret_ids, size_t *ret_count,
    struct error *err)
{
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    const char *p = text;
    for (;;) {
        char *end = NULL;
        const char *typed = p; // the larger of the two, which may be too large for any number
        unsigned long first = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : 0, last = first;
        if (end != NULL && *end == '-' && isdigit((unsigned char)end[1])) {
            typed = end + 1;
            last = strtoul(typed, &end, 10);
        }
        if (end == NULL || (*end != ',' && *end != '\0') || last < first) {
            (void)error_set(err, -EINVAL, "%s: '%.60s' is not a list of ids", what, text);
            return error_hint(err, "write 0,2 or 0-3");
        }
        if (last > max_id)
            return error_set(
                err, -ERANGE, "%s: id %.*s is above %u", what, (int)strcspn(typed, ","), typed, max_id);
        for (unsigned long id = first; id <= last; id++) {
            int r = add_id(what, (uint32_t)id, max_id, &ids, &count, err);
            if (r < 0)
                return r;
        }
        if (*end == '\0')
            break;
        p = end + 1;
    }
    *ret_ids = take_ptr(ids);
    *ret_count = count;
    return 0;
}

void format_size(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    bool is_whole = unit == 0 || value >= 100 || value == (double)(uint64_t)value;
    (void)snprintf(text, size, is_whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void format_duration(int64_t ms, char *text, size_t size)
{
    int64_t s = ms / 1000;
    if (ms < 1000)
        (void)snprintf(text, size, "%" PRId64 "ms", ms < 0 ? 0 : ms);
    else if (s < 60)
        (void)snprintf(text, size, "%" PRId64 "s", s);
    else if (s < 3600)
        (void)snprintf(text, size, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(text, size, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else
        (void)snprintf(text, size, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}

int parse_number(const char *text, const char *what, double max, double *ret, struct error *err)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= max))
        return error_set(err, -EINVAL, "%s: '%.60s' is not a number from 0 to %.15g", what, text, max);
    *ret = value;
    return 0;
}
