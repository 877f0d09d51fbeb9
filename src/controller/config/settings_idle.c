/* SPDX-License-Identifier: MIT */
/* Each time is a duration, or "never". */
#include "controller/config/settings_idle.h"

#include <errno.h>
#include <string.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"

static struct idle_policy *policy_of(void *target)
{
    return &(*(struct controller_options **)target)->idle;
}

static int option_set_never_or_time(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    const struct option_name what = option_name_of(row);
    int64_t ms = 0;
    int r = strcmp(value, "never") == 0 ? 0 : parse_duration(value, what.text, &ms, err);
    if (r < 0)
        return r;
    if (ms != 0 && ms < ASK_IDLE_MIN_MS)
        return error_set(err, -ERANGE, "%s: '%.40s' is less than a second", what.text, value);
    if (ms == 0 && strcmp(value, "never") != 0) {
        (void)error_set(err, -ERANGE, "%s: '%.40s' is not a time", what.text, value);
        return error_hint(err, "use never to disable it");
    }
    *(int64_t *)option_member(target, row) = ms;
    return 0;
}

static int set_ok(void *target, const char *value, struct error *err)
{
    bool is_allowed = strcmp(value, "allowed") == 0;
    if (!is_allowed && strcmp(value, "operators") != 0) {
        (void)error_set(err, -EINVAL, "--idle-ok: invalid value '%.40s'", value);
        return error_hint(err, "use allowed or operators");
    }
    policy_of(target)->is_ok_for_operators = !is_allowed;
    return 0;
}

const struct option_row idle_rows[] = {
    { 0, "idle-warn", "TIME|never", "mark a job that leaves its GPUs unused for this long",
        OPTION_INNER(never_or_time, struct controller_options, idle.warn_ms), .preset = "30m" },
    { 0, "idle-preemptible", "TIME|never", "allow preemption of idle jobs after this time",
        OPTION_INNER(never_or_time, struct controller_options, idle.yields_ms), .preset = "never" },
    { 0, "idle-end", "TIME|never", "end idle jobs after this time, after marking them",
        OPTION_INNER(never_or_time, struct controller_options, idle.end_ms), .preset = "never" },
    { 0, "idle-ok", "allowed|operators", "who may exempt a job: all users, or operators", set_ok, "allowed" },
    { 0, NULL, NULL, NULL, NULL },
};
