/* SPDX-License-Identifier: MIT */
/* Each time is a duration, or "never". */
#include "controller/config/settings_idle.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "controller/config/options.h"

static struct idle_policy *policy_of(void *target)
{
    return &(*(struct controller_options **)target)->idle;
}

static int set_time(int64_t *field, const char *what, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = strcmp(value, "never") == 0 ? 0 : parse_duration(value, what, &ms, err);
    if (r < 0)
        return r;
    if (ms != 0 && ms < ASK_IDLE_MIN_MS)
        return error_set(err, -ERANGE, "%s: '%.40s' is less than a second", what, value);
    if (ms == 0 && strcmp(value, "never") != 0) {
        (void)error_set(err, -ERANGE, "%s: '%.40s' is not a time", what, value);
        return error_hint(err, "use never to disable it");
    }
    *field = ms;
    return 0;
}

static int set_warn(void *target, const char *value, struct error *err)
{
    return set_time(&policy_of(target)->warn_ms, "--idle-warn", value, err);
}

static int set_preemptible(void *target, const char *value, struct error *err)
{
    return set_time(&policy_of(target)->yields_ms, "--idle-preemptible", value, err);
}

static int set_end(void *target, const char *value, struct error *err)
{
    return set_time(&policy_of(target)->end_ms, "--idle-end", value, err);
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
    { 0, "idle-warn", "TIME|never", "mark a job that leaves its GPUs unused for this long", set_warn, "30m" },
    { 0, "idle-preemptible", "TIME|never", "allow preemption of idle jobs after this time", set_preemptible,
        "never" },
    { 0, "idle-end", "TIME|never", "end idle jobs after this time, after marking them", set_end, "never" },
    { 0, "idle-ok", "allowed|operators", "who may exempt a job: all users, or operators", set_ok, "allowed" },
    { 0, NULL, NULL, NULL, NULL },
};
