/* SPDX-License-Identifier: MIT */
/*
 * A date is converted to a time and back. If the result differs, the date does not exist, such as February 30
 * or an hour skipped in spring.
 */
#include "cli/term/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"

#define DAYS_IN_WEEK 7
#define HINT         "use 18:00, 'Fri 18:00', +2h, '2026-11-22 14:00' or 2026-11-22T14:00:00Z"
#define PAST_HINT    "use an age, 12h or 7d, or 18:00, 'Fri 18:00', today, yesterday, '2026-11-22 14:00'"

const struct when_zone when_local = { localtime_r, mktime };
const struct when_zone when_utc = { gmtime_r, timegm };

/* The text being read, and the position in it. */
struct reader {
    const char *text, *what, *rest;
    int64_t now_ms;
    const struct when_zone *zone;
    bool is_past; // a time of day or a day of the week means the last one, not the next
    struct error *err;
};

static int refuse(const struct reader *reader)
{
    (void)error_set(reader->err, -EINVAL, "%s: '%.60s' is not a time", reader->what, reader->text);
    return error_hint(reader->err, "%s", reader->is_past ? PAST_HINT : HINT);
}

static void skip_blanks(struct reader *reader)
{
    reader->rest += strspn(reader->rest, " ");
}

/* Reads between `least` and `most` digits. */
static bool take_number(struct reader *reader, size_t least, size_t most, int *ret)
{
    size_t n = 0;
    int value = 0;
    while (n < most && isdigit((unsigned char)reader->rest[n]))
        value = value * 10 + (reader->rest[n++] - '0');
    if (n < least)
        return false;
    reader->rest += n;
    *ret = value;
    return true;
}

static bool take_character(struct reader *reader, char character)
{
    if (*reader->rest != character)
        return false;
    reader->rest++;
    return true;
}

/* HH:MM or HH:MM:SS. */
static bool take_clock(struct reader *reader, struct tm *date)
{
    if (!take_number(reader, 1, 2, &date->tm_hour) || !take_character(reader, ':') ||
        !take_number(reader, 2, 2, &date->tm_min))
        return false;
    date->tm_sec = 0;
    if (take_character(reader, ':') && !take_number(reader, 2, 2, &date->tm_sec))
        return false;
    return date->tm_hour < 24 && date->tm_min < 60 && date->tm_sec < 60;
}

static struct tm today(const struct reader *reader)
{
    time_t now = (time_t)(reader->now_ms / 1000);
    struct tm date = { 0 };
    (void)reader->zone->split(&now, &date);
    date.tm_isdst = -1;
    return date;
}

/* The time of a date in `zone`; the date must exist. */
static int join(
    const struct reader *reader, const struct when_zone *zone, const struct tm *date, int64_t *ret_ms)
{
    struct tm copy = *date, again = { 0 };
    copy.tm_isdst = -1;
    time_t when = zone->join(&copy);
    bool is_same = zone->split(&when, &again) != NULL && again.tm_min == date->tm_min &&
                   again.tm_hour == date->tm_hour && again.tm_mday == date->tm_mday &&
                   again.tm_mon == date->tm_mon && again.tm_year == date->tm_year;
    if (!is_same)
        return error_set(
            reader->err, -EINVAL, "%s: the time '%.60s' does not exist", reader->what, reader->text);
    *ret_ms = (int64_t)when * 1000;
    return 0;
}

/* The time `days` after a date at its hour; the date is normalised first, so the 32nd becomes the first. */
static int join_days(const struct reader *reader, const struct tm *date, int days, int64_t *ret_ms)
{
    struct tm day = *date;
    day.tm_mday += days;
    day.tm_hour = 12;
    (void)when_utc.join(&day);
    day.tm_hour = date->tm_hour;
    return join(reader, reader->zone, &day, ret_ms);
}

static int read_now(struct reader *reader, int64_t *ret_ms)
{
    if (strcasecmp(reader->text, "now") != 0)
        return 0;
    *ret_ms = reader->now_ms;
    return 1;
}

static int read_relative(struct reader *reader, int64_t *ret_ms)
{
    int64_t ms = 0;
    if (reader->text[0] != '+')
        return 0;
    if (reader->is_past)
        return refuse(reader);
    int r = parse_duration(reader->text + 1, reader->what, &ms, reader->err);
    if (r < 0)
        return refuse(reader);
    *ret_ms = reader->now_ms + ms;
    return 1;
}

/* Z or +HH:MM, in seconds east of Greenwich; false for any other text. */
static bool take_offset(struct reader *reader, int *ret_seconds)
{
    int hours = 0, minutes = 0;
    bool is_west = *reader->rest == '-';
    *ret_seconds = 0;
    if (take_character(reader, 'Z') || take_character(reader, 'z'))
        return true;
    if (!take_character(reader, '+') && !take_character(reader, '-'))
        return false;
    if (!take_number(reader, 2, 2, &hours))
        return false;
    (void)take_character(reader, ':');
    if (!take_number(reader, 2, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_seconds = (hours * 60 + minutes) * (is_west ? -60 : 60);
    return true;
}

/* 2026-11-22, optionally followed by a blank or T and a time of day, and then by an offset. */
static int read_date(struct reader *reader, int64_t *ret_ms)
{
    struct tm date = { 0 };
    int offset = 0, r = 0, fraction = 0;
    if (!take_number(reader, 4, 4, &date.tm_year) || !take_character(reader, '-'))
        return 0;
    if (!take_number(reader, 2, 2, &date.tm_mon) || !take_character(reader, '-') ||
        !take_number(reader, 2, 2, &date.tm_mday))
        return refuse(reader);
    date.tm_year -= 1900;
    date.tm_mon -= 1;
    bool has_clock = *reader->rest == ' ' || *reader->rest == 'T' || *reader->rest == 't';
    if (has_clock)
        reader->rest++;
    if (has_clock && !take_clock(reader, &date))
        return refuse(reader);
    if (has_clock && take_character(reader, '.') && !take_number(reader, 1, 9, &fraction))
        return refuse(reader);
    bool has_offset = has_clock && *reader->rest != '\0';
    if (has_offset && !take_offset(reader, &offset))
        return refuse(reader);
    if (*reader->rest != '\0')
        return refuse(reader);
    r = join(reader, has_offset ? &when_utc : reader->zone, &date, ret_ms);
    *ret_ms -= (int64_t)offset * 1000;
    return r < 0 ? r : 1;
}

/* The time on the day `days` from today. If it has passed, `step` days later; for past times, `step` days
 * earlier if it has not passed. For past times, a day without a time means its start. */
static int read_clock_on(struct reader *reader, int days, int step, int64_t *ret_ms)
{
    struct tm date = today(reader);
    skip_blanks(reader);
    bool is_whole_day = reader->is_past && *reader->rest == '\0' && reader->rest > reader->text;
    date.tm_hour = date.tm_min = date.tm_sec = 0;
    if (!is_whole_day && (!take_clock(reader, &date) || *reader->rest != '\0'))
        return refuse(reader);
    int r = join_days(reader, &date, days, ret_ms);
    if (r == 0 && step > 0 && !reader->is_past && *ret_ms <= reader->now_ms)
        r = join_days(reader, &date, days + step, ret_ms);
    else if (r == 0 && step > 0 && reader->is_past && *ret_ms > reader->now_ms)
        r = join_days(reader, &date, days - step, ret_ms);
    return r < 0 ? r : 1;
}

static int read_clock(struct reader *reader, int64_t *ret_ms)
{
    if (!isdigit((unsigned char)reader->text[0]) || strchr(reader->text, ':') == NULL)
        return 0;
    return read_clock_on(reader, 0, 1, ret_ms);
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if (strncasecmp(reader->rest, word, length) != 0 ||
        (reader->rest[length] != ' ' && reader->rest[length] != '\0'))
        return false;
    reader->rest += length;
    return true;
}

/* "Fri 18:00", "friday 18:00", "today 18:00", "tomorrow 9:00", "yesterday", "Fri". */
static int read_day(struct reader *reader, int64_t *ret_ms)
{
    static const char *const days[DAYS_IN_WEEK][2] = { { "Sun", "Sunday" }, { "Mon", "Monday" },
        { "Tue", "Tuesday" }, { "Wed", "Wednesday" }, { "Thu", "Thursday" }, { "Fri", "Friday" },
        { "Sat", "Saturday" } };
    if (take_word(reader, "today"))
        return read_clock_on(reader, 0, 0, ret_ms);
    if (take_word(reader, "tomorrow"))
        return read_clock_on(reader, 1, 0, ret_ms);
    if (take_word(reader, "yesterday"))
        return read_clock_on(reader, -1, 0, ret_ms);
    for (int i = 0; i < DAYS_IN_WEEK; i++)
        if (take_word(reader, days[i][0]) || take_word(reader, days[i][1])) {
            int ahead = (i - today(reader).tm_wday + DAYS_IN_WEEK) % DAYS_IN_WEEK;
            bool is_behind = reader->is_past && ahead > 0;
            return read_clock_on(reader, is_behind ? ahead - DAYS_IN_WEEK : ahead, DAYS_IN_WEEK, ret_ms);
        }
    return 0;
}

static int parse(const struct reader *begin, int64_t *ret_ms)
{
    static int (*const forms[])(struct reader * reader, int64_t * ret_ms) = { read_now, read_relative,
        read_date, read_clock, read_day };
    int64_t ms = 0;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct reader reader = *begin;
        int r = forms[i](&reader, &ms);
        if (r < 0)
            return r;
        if (r > 0) {
            *ret_ms = ms;
            return 0;
        }
    }
    return refuse(begin);
}

/* A number of which nobody would mean that many seconds. */
static bool is_hour(const char *text)
{
    return text[strspn(text, "0123456789")] == '\0' && strlen(text) <= 2 && strtol(text, NULL, 10) < 24;
}

int when_parse(const char *text, const char *what, int64_t now_ms, const struct when_zone *zone,
    int64_t *ret_ms, struct error *err)
{
    const struct reader reader = {
        .text = text, .what = what, .rest = text, .now_ms = now_ms, .zone = zone, .err = err
    };
    int64_t duration = 0;
    int r = parse(&reader, ret_ms);
    if (r < 0 && parse_duration(text, what, &duration, NULL) == 0)
        return is_hour(text) ? error_hint(err, "%s:00 is a time of day, +%sh a time from now", text, text)
                             : error_hint(err, "for a time from now, use +%.60s", text);
    return r;
}

int when_parse_past(const char *text, const char *what, int64_t now_ms, const struct when_zone *zone,
    int64_t *ret_ms, struct error *err)
{
    const struct reader reader = {
        .text = text, .what = what, .rest = text, .now_ms = now_ms, .zone = zone, .is_past = true, .err = err
    };
    int64_t age_ms = 0;
    bool is_clock = strchr(text, ':') != NULL && text[strspn(text, "0123456789:")] == '\0';
    if (is_clock || parse_duration(text, what, &age_ms, NULL) < 0)
        return parse(&reader, ret_ms);
    *ret_ms = now_ms > age_ms ? now_ms - age_ms : 1;
    return 0;
}
