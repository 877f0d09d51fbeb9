/* SPDX-License-Identifier: MIT */
/* Times and durations in Slurm's format, and those of a job. */
#include "compat/slurm/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/slurm_moment.h"
#include "cli/term/time_text.h"
#include "compat/slurm/jobs.h"
#include "job/slurm.h"

#define TIME_SIZE 256 // size of a text in a user's format
#define MINUTE_S  60
#define HOUR_S    3600
#define DAY_S     86400
#define MILLI     1000

#define ISO_FORMAT   "%Y-%m-%dT%H:%M:%S"
#define DAYS_OF_WEEK 6
#define DAYS_OF_YEAR 365
#define YEAR_STEP    1000 // as Slurm counts days: a day in another year is farther than any day in this one

/* Slurm's "relative": the nearer the day, the shorter the date. */
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
#pragma GCC diagnostic ignored "-Wformat-nonliteral" // the format was given by the user
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

/* --- of a job --- */

#define TEXT(name) char *slurm_text_##name(const json_t *job, int64_t now_ms)

static char *number(int64_t value)
{
    return xasprintf("%" PRId64, value);
}

static int64_t run_seconds(const json_t *job)
{
    return (int64_t)field_number(job, "run_seconds", 0);
}

TEXT(limit)
{
    double limit = field_number(job, "time_limit", 0);
    return limit > 0 ? slurm_duration_text((int64_t)limit, false) : xstrdup("UNLIMITED");
}

TEXT(limit_raw)
{
    double limit = field_number(job, "time_limit", 0);
    return limit > 0 ? number((int64_t)limit / MINUTE_S) : xstrdup("UNLIMITED");
}

FIELD(used, slurm_duration_text(run_seconds(job), false))

TEXT(left)
{
    int64_t limit = (int64_t)field_number(job, "time_limit", 0), used = run_seconds(job);
    return limit == 0 ? xstrdup("UNLIMITED") : slurm_duration_text(limit > used ? limit - used : 0, false);
}

FIELD(elapsed, slurm_duration_text(run_seconds(job), true))
FIELD(elapsed_raw, number(run_seconds(job)))

/* Slurm's CPUTime is the time for which CPUs were allocated, whether used or not (sacct(1)). */
static int64_t allocated_cpu_s(const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *cpus = slurm_text_cpus(job, now_ms);
    return run_seconds(job) * strtoll(cpus, NULL, 10);
}

FIELD(cpu_time, slurm_duration_text(allocated_cpu_s(job, now_ms), true))
FIELD(cpu_time_raw, xasprintf("%" PRId64, allocated_cpu_s(job, now_ms)))

static int64_t moment(const json_t *job, const char *key)
{
    return field_text(job, key) != NULL ? time_parse(field_text(job, key)) : 0;
}

FIELD(submitted, slurm_time_shown(moment(job, "submitted_at"), "N/A"))
FIELD(started, slurm_time_shown(moment(job, "started_at"), "N/A"))

/* For a waiting job: when it is expected to start. */
TEXT(expected)
{
    int64_t started = moment(job, "started_at"), eta = moment(job, "eta"), begin = moment(job, "begin");
    return slurm_time_shown(started != 0 ? started : eta != 0 ? eta : begin, "N/A");
}

TEXT(ended)
{
    /* The limit of a job that starts early begins when it has its GPUs. */
    bool is_early = field_is(job, "park", "early");
    int64_t ended = moment(job, "ended_at"), granted = moment(job, "gpus_at");
    int64_t started = granted != 0 ? granted : is_early ? 0 : moment(job, "started_at");
    int64_t limit = (int64_t)(field_number(job, "time_limit", 0) * MILLI);
    double parked_s = 0;
    (void)field_measured(job, "parked_seconds", &parked_s); // its limit did not pass meanwhile
    return slurm_time_shown(ended != 0                   ? ended
                            : started != 0 && limit != 0 ? started + limit + (int64_t)(parked_s * MILLI)
                                                         : 0,
        "N/A");
}

FIELD(account_start, slurm_time_shown(moment(job, "started_at"), "Unknown"))
FIELD(account_end, slurm_time_shown(moment(job, "ended_at"), "Unknown"))

TEXT(account_limit)
{
    double limit = field_number(job, "time_limit", 0);
    return limit > 0 ? slurm_duration_text((int64_t)limit, true) : xstrdup("UNLIMITED");
}

TEXT(pending_time)
{
    int64_t submitted = moment(job, "submitted_at"), started = moment(job, "started_at");
    return number(submitted == 0 ? 0 : ((started != 0 ? started : now_ms) - submitted) / MILLI);
}

static int64_t noted_seconds(const json_t *job, const char *note)
{
    const char *text = slurm_job_note(job, note);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

/* The time by which it must have ended; mgpu's deadline is the latest start. */
TEXT(deadline)
{
    int64_t start = moment(job, "deadline");
    int64_t left = noted_seconds(job, SLURM_NOTE_LEFT_AT_DEADLINE) * MILLI;
    return slurm_time_shown(start != 0 ? start + left : 0, "N/A");
}

TEXT(least_limit)
{
    int64_t seconds = noted_seconds(job, SLURM_NOTE_TIME_MIN);
    return seconds > 0 ? slurm_duration_text(seconds, true) : xstrdup("N/A");
}

TEXT(begin)
{
    int64_t begin = moment(job, "begin");
    return slurm_time_shown(begin != 0 ? begin : moment(job, "submitted_at"), "N/A");
}

/* The same in squeue. */
FIELD(least_short, slurm_duration_text(noted_seconds(job, SLURM_NOTE_TIME_MIN), false))
