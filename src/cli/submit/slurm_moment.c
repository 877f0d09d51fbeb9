/* SPDX-License-Identifier: MIT */
/*
 * A time is a sequence of parts, each of which sets the date or the time of day. Missing parts follow from
 * the present time and the tense, as in Slurm: a time alone is today's or, in the future tense, the next one;
 * a date alone is its start; a date without a year is the last or the next one.
 */
#include "cli/submit/slurm_moment.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/memory.h"
#include "cli/submit/slurm_option.h"

#define MILLI      1000
#define CENTURY    100 // for two-digit years, counted from 1900
#define UNSET      (-1)
#define DELTA_MAX  (INT64_C(1) << 32)
#define DAY_DIGITS 2

struct moment {
    const char *rest;
    struct tm now;
    int year, month, day; // as in struct tm
    int hour, minute, second;
};

/* Exactly `count` digits. */
static bool take_digits(struct moment *moment, size_t count, int *ret)
{
    int value = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isdigit((unsigned char)moment->rest[i]))
            return false;
        value = value * 10 + (moment->rest[i] - '0');
    }
    moment->rest += count;
    *ret = value;
    return true;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

static bool take_word(struct moment *moment, const char *word)
{
    size_t length = strlen(word);
    if (strncasecmp(moment->rest, word, length) != 0 || isalnum((unsigned char)moment->rest[length]))
        return false;
    moment->rest += length;
    return true;
}

static bool set_day(struct moment *moment, int year, int month, int day)
{
    if (moment->day != UNSET || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    moment->year = year;
    moment->month = month - 1;
    moment->day = day;
    return true;
}

static bool set_time(struct moment *moment, int hour, int minute, int second)
{
    if (moment->hour != UNSET || hour > 23 || minute > 59 || second > 59)
        return false;
    moment->hour = hour;
    moment->minute = minute;
    moment->second = second;
    return true;
}

/* "9:30", "09:30:10", "4:30pm", "4:30 PM". */
static bool read_time(struct moment *moment)
{
    int hour = 0, minute = 0, second = 0;
    if (!take_digits(moment, count_digits(moment->rest), &hour) || *moment->rest++ != ':' ||
        !take_digits(moment, 2, &minute))
        return false;
    if (*moment->rest == ':') {
        moment->rest++;
        if (!take_digits(moment, 2, &second))
            return false;
    }
    moment->rest += strspn(moment->rest, " ");
    bool is_am = take_word(moment, "am"), is_pm = !is_am && take_word(moment, "pm");
    if ((is_am || is_pm) && (hour < 1 || hour > 12))
        return false;
    if (is_am || is_pm)
        hour = hour % 12 + (is_pm ? 12 : 0);
    return set_time(moment, hour, minute, second);
}

/* "11/27", "11.27.26", "1127", "112726", "2026-11-27". */
static bool read_day(struct moment *moment)
{
    int year = UNSET, month = 0, day = 0;
    size_t digits = count_digits(moment->rest);
    if (digits == 4 && moment->rest[4] == '-' && count_digits(moment->rest + 5) == DAY_DIGITS &&
        moment->rest[7] == '-') {
        (void)take_digits(moment, 4, &year);
        moment->rest++;
        (void)take_digits(moment, DAY_DIGITS, &month);
        moment->rest++;
        if (!take_digits(moment, DAY_DIGITS, &day) || year < 1970)
            return false;
        if (*moment->rest == 'T' || *moment->rest == 't')
            moment->rest++;
        return set_day(moment, year - 1900, month, day);
    }
    if (digits == 4 || digits == 6) {
        (void)take_digits(moment, DAY_DIGITS, &month);
        (void)take_digits(moment, DAY_DIGITS, &day);
        if (digits == 6 && take_digits(moment, DAY_DIGITS, &year))
            year += CENTURY;
        return set_day(moment, year, month, day);
    }
    if (digits < 1 || digits > 2 || !take_digits(moment, digits, &month))
        return false;
    char between = *moment->rest++;
    digits = between == '/' || between == '.' ? count_digits(moment->rest) : 0;
    if (digits < 1 || digits > 2 || !take_digits(moment, digits, &day))
        return false;
    if (*moment->rest == between) {
        moment->rest++;
        digits = count_digits(moment->rest);
        if (digits != 2 && digits != 4)
            return false;
        (void)take_digits(moment, digits, &year);
        year += digits == 2 ? CENTURY : -1900;
    }
    return set_day(moment, year, month, day);
}

static bool read_word(struct moment *moment)
{
    static const struct {
        const char *word;
        int hour, days; // UNSET: none
    } words[] = {
        { "midnight", 0, UNSET },
        { "elevenses", 11, UNSET },
        { "noon", 12, UNSET },
        { "fika", 15, UNSET },
        { "teatime", 16, UNSET },
        { "today", UNSET, 0 },
        { "tomorrow", UNSET, 1 },
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!take_word(moment, words[i].word))
            continue;
        if (words[i].hour != UNSET)
            return set_time(moment, words[i].hour, 0, 0);
        struct tm day = moment->now;
        day.tm_mday += words[i].days;
        day.tm_hour = 12;
        (void)when_utc.join(&day);
        return set_day(moment, day.tm_year, day.tm_mon + 1, day.tm_mday);
    }
    return false;
}

static bool read_parts(struct moment *moment)
{
    while (*moment->rest != '\0') {
        size_t digits = count_digits(moment->rest);
        bool is_read = digits == 0                   ? read_word(moment)
                       : moment->rest[digits] == ':' ? digits <= 2 && read_time(moment)
                                                     : read_day(moment);
        if (!is_read)
            return false;
        moment->rest += strspn(moment->rest, " -,");
    }
    return moment->day != UNSET || moment->hour != UNSET;
}

/* Compares the date, with the present year, with today, or the time with now. */
static int compare_now(const struct moment *moment)
{
    const int ours[] = { moment->month, moment->day, moment->hour, moment->minute };
    const int now[] = { moment->now.tm_mon, moment->now.tm_mday, moment->now.tm_hour, moment->now.tm_min };
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (ours[i] != now[i])
            return ours[i] < now[i] ? -1 : 1;
    return 0;
}

static void complete(struct moment *moment, enum slurm_tense tense)
{
    struct tm day = moment->now;
    if (moment->hour == UNSET)
        moment->hour = moment->minute = moment->second = 0;
    if (moment->day == UNSET) {
        moment->month = day.tm_mon;
        moment->day = day.tm_mday;
        day.tm_mday += tense == SLURM_AHEAD && compare_now(moment) <= 0;
        day.tm_hour = 12;
        (void)when_utc.join(&day);
        moment->year = day.tm_year;
        moment->month = day.tm_mon;
        moment->day = day.tm_mday;
    }
    if (moment->year != UNSET)
        return;
    bool is_later_day =
        moment->month > day.tm_mon || (moment->month == day.tm_mon && moment->day > day.tm_mday);
    moment->year = day.tm_year;
    if (tense == SLURM_PAST && is_later_day)
        moment->year--;
    else if (tense == SLURM_AHEAD && compare_now(moment) <= 0)
        moment->year++;
}

/* The date must exist, and so must the hour. */
static bool join(const struct moment *moment, const struct when_zone *zone, int64_t *ret_ms)
{
    struct tm date = { .tm_year = moment->year,
        .tm_mon = moment->month,
        .tm_mday = moment->day,
        .tm_hour = moment->hour,
        .tm_min = moment->minute,
        .tm_sec = moment->second,
        .tm_isdst = -1 };
    struct tm again = date;
    time_t when = zone->join(&again);
    if (again.tm_mday != moment->day || again.tm_mon != moment->month)
        return false;
    *ret_ms = (int64_t)when * MILLI;
    return true;
}

/* "now", "now+2hours", "now-60", "now+1week": a count without a unit is in seconds. */
static bool read_now(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    static const struct {
        const char *name; // or a prefix of it
        int64_t seconds;
    } units[] = { { "seconds", 1 }, { "minutes", 60 }, { "hours", 3600 }, { "days", 86400 },
        { "weeks", 604800 } };
    if (strncasecmp(text, "now", 3) != 0)
        return false;
    const char *p = text + 3 + strspn(text + 3, " ");
    *ret_ms = now_ms;
    if (*p == '\0')
        return true;
    if (*p != '+' && *p != '-')
        return false;
    int64_t sign = *p++ == '-' ? -1 : 1;
    p += strspn(p, " ");
    size_t digits = count_digits(p);
    if (digits == 0 || digits > 9)
        return false;
    int64_t count = strtoll(p, NULL, 10), factor = p[digits] == '\0' ? 1 : 0;
    p += digits + strspn(p + digits, " ");
    for (size_t i = 0; factor == 0 && i < sizeof(units) / sizeof(units[0]); i++)
        if (strncasecmp(units[i].name, p, strlen(p)) == 0)
            factor = units[i].seconds;
    if (factor == 0 || count * factor > DELTA_MAX)
        return false;
    *ret_ms = now_ms + sign * count * factor * MILLI;
    return true;
}

/* "uts1795264200": seconds since 1970. */
static bool read_seconds(const char *text, int64_t *ret_ms)
{
    size_t digits = strncasecmp(text, "uts", 3) == 0 ? count_digits(text + 3) : 0;
    if (digits == 0 || digits > 11 || text[3 + digits] != '\0')
        return false;
    *ret_ms = strtoll(text + 3, NULL, 10) * MILLI;
    return true;
}

int slurm_parse_moment(const char *what, const char *text, enum slurm_tense tense, int64_t now_ms,
    const struct when_zone *zone, int64_t *ret_ms, struct error *err)
{
    struct moment moment = {
        .rest = text + strspn(text, " "), .year = UNSET, .month = UNSET, .day = UNSET, .hour = UNSET
    };
    time_t now = (time_t)(now_ms / MILLI);
    (void)zone->split(&now, &moment.now);
    int64_t ms = 0;
    bool is_read = read_now(text, now_ms, &ms) || read_seconds(text, &ms);
    if (!is_read && read_parts(&moment)) {
        complete(&moment, tense);
        is_read = join(&moment, zone, &ms);
    }
    if (is_read) {
        *ret_ms = ms;
        return 0;
    }
    bool is_number = text[count_digits(text)] == '\0'; // a date that does not exist, not an age
    struct error ours = { 0 };
    int r = tense == SLURM_PAST && !is_number ? when_parse_past(text, what, now_ms, zone, ret_ms, &ours)
                                              : when_parse(text, what, now_ms, zone, ret_ms, &ours);
    if (r == 0)
        return 0;
    (void)error_set(
        err, r, "Invalid time specification (pos=%d): %.60s", strncasecmp(text, "now", 3) == 0 ? 3 : 0, text);
    (void)error_hint(err, "%.120s%s%.120s", ours.message, ours.hint[0] != '\0' ? "; " : "", ours.hint);
    return error_mark(err, SLURM_BARE, r);
}

char *slurm_time_text(int64_t wall_ms, const char *otherwise)
{
    char text[32] = "";
    struct tm date;
    time_t when = (time_t)(wall_ms / MILLI);
    if (wall_ms == 0 || localtime_r(&when, &date) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &date) == 0)
        return xstrdup(otherwise);
    return xstrdup(text);
}
