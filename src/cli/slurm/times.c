/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <time.h>

#include "base/memory.h"
#include "cli/slurm/fields.h"

#define MINUTE_S 60
#define HOUR_S   3600
#define DAY_S    86400
#define MILLI    1000

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
