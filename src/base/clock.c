/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_boot_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

void clock_format_utc(int64_t wall_ms, char *text, size_t size)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    (void)gmtime_r(&seconds, &parts);
    char date[32];
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text, size, "%s.%03dZ", date, (int)(wall_ms % 1000));
}
