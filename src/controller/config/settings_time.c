/* SPDX-License-Identifier: MIT */
/* Each time limit is a duration, or "none". */
#include "controller/config/settings_time.h"

#include <errno.h>
#include <string.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"
#include "job/ask.h"

#define PATIENCE_MIN_MS 1000

static int option_set_time_or_none(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    const struct option_name what = option_name_of(row);
    int64_t ms = 0;
    bool is_none = strcmp(value, "none") == 0;
    int r = is_none ? 0 : parse_duration(value, what.text, &ms, err);
    if (r < 0)
        return r;
    if (ms == 0 && !is_none) {
        (void)error_set(err, -ERANGE, "%s: '%.40s' leaves no time to run", what.text, value);
        return error_hint(err, "use none for no limit");
    }
    *(int64_t *)option_member(target, row) = ms;
    return 0;
}

static int set_grace(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    int64_t ms = 0;
    int r = parse_duration(value, "--grace", &ms, err);
    if (r < 0)
        return r;
    if (ms > ASK_GRACE_MAX_MS)
        return error_set(err, -ERANGE, "--grace: '%.40s' is more than 24 h", value);
    options->grace_ms = ms;
    return 0;
}

static int set_patience(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    int64_t ms = 0;
    bool is_none = strcmp(value, "none") == 0;
    int r = is_none ? 0 : parse_duration(value, "--start-patience", &ms, err);
    if (r < 0)
        return r;
    if (ms < PATIENCE_MIN_MS && !is_none)
        return error_set(err, -ERANGE, "--start-patience: '%.40s' is less than a second", value);
    options->start_patience_ms = ms;
    return 0;
}

const struct option_row time_rows[] = {
    { 0, "max-time", "TIME|none", "maximum time limit of a job",
        OPTION_INNER(time_or_none, struct controller_options, max_time_ms), .preset = "none" },
    { 0, "default-time", "TIME|none", "time limit of jobs that request none",
        OPTION_INNER(time_or_none, struct controller_options, default_time_ms), .preset = "none" },
    { 0, "grace", "TIME", "time between SIGTERM and SIGKILL, unless set by the job or the cancel", set_grace,
        ASK_GRACE_DEFAULT },
    { 0, "start-patience", "TIME|none",
        "how long a job waits while nodes cannot start it for reasons of their own", set_patience, "15m" },
    { 0, NULL, NULL, NULL, NULL },
};
