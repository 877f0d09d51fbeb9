/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/slurm/fields.h"
#include "cli/submit/slurm_moment.h"

#define TIME_SIZE 256 // of a text in a format of the user
#define MINUTE_S  60
#define HOUR_S    3600
#define DAY_S     86400
#define MILLI     1000

#define ISO_FORMAT   "%Y-%m-%dT%H:%M:%S"
#define DAYS_OF_WEEK 6
#define DAYS_OF_YEAR 365
#define YEAR_STEP    1000 // as Slurm counts days: another year is farther than any day of this one

/* Slurm's "relative": the nearer the day, the less of the date. */
static const char *relative_format(const struct tm *date)
{
    struct tm today;
    time_t now = (time_t)(clock_wall_ms() / MILLI);
    if (localtime_r(&now, &today) == NULL)
        return ISO_FORMAT;
    int days = (date->tm_year - today.tm_year) * YEAR_STEP + date->tm_yday - today.tm_yday;
    if (days == 0)
        return "%H:%M:%S";
    if (days == -1)
        return "Ystday %H:%M";
    if (days == 1)
        return "Tomorr %H:%M";
    if (days < -DAYS_OF_YEAR || days > DAYS_OF_YEAR)
        return "%-d %b %Y";
    return days > 1 && days <= DAYS_OF_WEEK ? "%a %H:%M" : "%-d %b %H:%M";
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" // the format is the user's
char *slurm_time_shown(int64_t wall_ms, const char *otherwise)
{
    const char *format = getenv("SLURM_TIME_FORMAT");
    char text[TIME_SIZE];
    struct tm date;
    time_t when = (time_t)(wall_ms / MILLI);
    if (wall_ms == 0 || format == NULL || localtime_r(&when, &date) == NULL)
        return slurm_time_text(wall_ms, otherwise);
    if (strcmp(format, "relative") == 0)
        format = relative_format(&date);
    if (strchr(format, '%') == NULL || strftime(text, sizeof(text), format, &date) == 0)
        return slurm_time_text(wall_ms, otherwise);
    return xstrdup(text);
}
#pragma GCC diagnostic pop

char *slurm_date_text(int64_t wall_ms)
{
    char text[64] = "Unknown";
    struct tm date;
    time_t when = (time_t)(wall_ms / MILLI);
    if (wall_ms != 0 && localtime_r(&when, &date) != NULL)
        (void)strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &date);
    return xstrdup(text);
}

void slurm_print_date(void)
{
    _cleanup_free_ char *text = slurm_date_text(clock_wall_ms());
    (void)puts(text);
}

int64_t slurm_midnight_ms(void)
{
    time_t now = (time_t)(clock_wall_ms() / MILLI);
    struct tm date;
    if (localtime_r(&now, &date) == NULL)
        return 0;
    date.tm_hour = date.tm_min = date.tm_sec = 0;
    date.tm_isdst = -1;
    return (int64_t)mktime(&date) * MILLI;
}

char *slurm_duration_text(int64_t seconds, int is_full)
{
    int64_t days = seconds / DAY_S, hours = seconds / HOUR_S % 24, minutes = seconds / MINUTE_S % 60;
    int64_t rest = seconds % MINUTE_S;
    if (days > 0)
        return xasprintf("%" PRId64 "-%02" PRId64 ":%02" PRId64 ":%02" PRId64, days, hours, minutes, rest);
    if (is_full)
        return xasprintf("%02" PRId64 ":%02" PRId64 ":%02" PRId64, hours, minutes, rest);
    if (hours > 0)
        return xasprintf("%" PRId64 ":%02" PRId64 ":%02" PRId64, hours, minutes, rest);
    return xasprintf("%" PRId64 ":%02" PRId64, minutes, rest);
}
