/* SPDX-License-Identifier: MIT */
/* Whether jobs may send notifications, and how many. */
#include "controller/config/settings_notifications.h"

#include <errno.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"

#define PER_HOUR_MAX 100000
#define TIME_MIN_MS  1000
#define TIME_MAX_MS  600000

static struct notification_settings *settings_of(void *target)
{
    return &(*(struct controller_options **)target)->notifications;
}

static int set_notifications(void *target, const char *value, struct error *err)
{
    bool is_on = false;
    int r = option_on_off("--notices", value, &is_on, err);
    if (r == 0)
        settings_of(target)->is_off = !is_on;
    return r;
}

static int set_time(void *target, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, "--notice-time", &ms, err);
    if (r == 0 && (ms < TIME_MIN_MS || ms > TIME_MAX_MS))
        r = error_set(err, -ERANGE, "--notice-time: '%.40s' is outside 1s to 10m", value);
    if (r == 0)
        settings_of(target)->time_ms = ms;
    return r;
}

const struct option_row notifications_rows[] = {
    { 0, "notices", "on|off", "allow jobs to send notifications: mail, commands, URLs", set_notifications,
        "on" },
    { 0, "notices-per-hour", "N", "maximum notifications per user and hour; more are dropped",
        OPTION_INNER(count, struct controller_options, notifications.per_hour), OPTION_RANGE(1, PER_HOUR_MAX),
        .preset = "60" },
    { 0, "notice-time", "TIME", "time limit for a mail, command or request", set_time, "30s" },
    { 0, NULL, NULL, NULL, NULL },
};
