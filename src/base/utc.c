/* SPDX-License-Identifier: MIT */
#include "base/utc.h"

#include <stdio.h>
#include <time.h>

void utc_format(int64_t wall_ms, char *text, size_t size)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    (void)gmtime_r(&seconds, &parts);
    char date[32];
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text, size, "%s.%03dZ", date, (int)(wall_ms % 1000));
}
