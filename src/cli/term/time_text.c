/* SPDX-License-Identifier: MIT */
/* The API uses UTC; users see local time, with only the necessary part of the date. */
#include "cli/term/time_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

int64_t time_parse(const char *text)
{
    struct tm when = { 0 };
    const char *rest = text == NULL ? NULL : strptime(text, "%Y-%m-%dT%H:%M:%S", &when);
    if (rest == NULL)
        return 0;
    int64_t ms = (int64_t)timegm(&when) * 1000;
    int64_t scale = 100;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
            ms += (*rest - '0') * scale;
    return strcmp(rest, "Z") == 0 ? ms : 0;
}

static void split(int64_t wall_ms, enum time_style style, struct tm *ret)
{
    time_t when = (time_t)(wall_ms / 1000);
    if (style == TIME_ZULU)
        (void)gmtime_r(&when, ret);
    else
        (void)localtime_r(&when, ret);
}

static void format(
    int64_t wall_ms, int64_t now_ms, enum time_style style, bool is_short, char *text, size_t size)
{
    struct tm then = { 0 }, today = { 0 };
    split(wall_ms, style, &then);
    split(now_ms, style, &today);
    bool is_today = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
    bool is_soon = is_short && wall_ms > now_ms && wall_ms < now_ms + 12 * HOUR_MS; // "00:20" at 23:20
    bool is_near = wall_ms < now_ms + 6 * DAY_MS && wall_ms > now_ms - 6 * DAY_MS;
    size_t n = 0;
    if (style == TIME_ISO)
        n = strftime(text, size, "%Y-%m-%dT%H:%M:%S%z", &then);
    else if (is_today || is_soon)
        n = strftime(text, size, is_short ? "%H:%M" : "%H:%M:%S", &then);
    else
        n = strftime(text, size, is_near ? "%a %H:%M" : "%Y-%m-%d %H:%M", &then);
    if (n == 0)
        (void)snprintf(text, size, "?");
}

void time_format(int64_t wall_ms, int64_t now_ms, enum time_style style, char *text, size_t size)
{
    format(wall_ms, now_ms, style, false, text, size);
}

void time_format_date(int64_t wall_ms, enum time_style style, char *text, size_t size)
{
    struct tm then = { 0 };
    split(wall_ms, style, &then);
    if (strftime(text, size, style == TIME_ISO ? "%Y-%m-%dT%H:%M:%S%z" : "%Y-%m-%d %H:%M", &then) == 0)
        (void)snprintf(text, size, "?");
}

void time_format_short(int64_t wall_ms, int64_t now_ms, enum time_style style, char *text, size_t size)
{
    format(wall_ms, now_ms, style, true, text, size);
}
