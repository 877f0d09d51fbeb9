/* SPDX-License-Identifier: MIT */
/* Parked jobs keep the contents of their GPU memory in the memory of their node (core/park.c). */
#include "controller/config/settings_park.h"

#include <errno.h>
#include <string.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"

#define TIMEOUT_MIN_MS 1000

static int set_timeout(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    int64_t ms = 0;
    int r = parse_duration(value, "--park-timeout", &ms, err);
    if (r < 0)
        return r;
    if (ms < TIMEOUT_MIN_MS)
        return error_set(err, -ERANGE, "--park-timeout: '%.40s' is less than a second", value);
    options->park.timeout_ms = ms;
    return 0;
}

static int set_mode(void *target, const char *value, struct error *err)
{
    static const char *const names[] = {
        [PARKING_NEVER] = "never", [PARKING_ASKED] = "asked", [PARKING_AUTO] = "auto"
    };
    struct controller_options *options = *(struct controller_options **)target;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(value, names[i]) == 0) {
            options->sched.parking = (enum parking_mode)i;
            return 0;
        }
    (void)error_set(err, -EINVAL, "--park: invalid value '%.40s'", value);
    return error_hint(err,
        "never: no job is parked; asked: only on request, or for jobs with --on-preempt and "
        "--on-timeout; auto: also for jobs that will probably end sooner");
}

const struct option_row park_rows[] = {
    { 0, "park", "never|asked|auto",
        "which jobs are parked: none, those for which it is requested, or also jobs chosen by mgpud, for one "
        "that will probably end much sooner",
        set_mode, "asked" },
    { 0, "park-after", "TIME",
        "a job has its GPUs for this time before the scheduler takes them for another one",
        OPTION_INNER(expiry, struct controller_options, sched.quantum_ms), .preset = "1m" },
    { 0, "park-cost", "auto|TIME", "with --park auto: the time to park and to return a job; auto: 40s",
        OPTION_INNER(duration, struct controller_options, sched.park_cost_ms), OPTION_ZERO("auto"),
        .preset = "auto" },
    { 0, "park-max", "auto|SIZE",
        "GPU memory that parked jobs keep in the memory of a node; auto: half of it",
        OPTION_INNER(size, struct controller_options, park.bytes_max), OPTION_ZERO("auto"),
        .preset = "auto" },
    { 0, "park-timeout", "TIME", "time to save the GPU memory of a job that is parked", set_timeout, "2m" },
    { 0, NULL, NULL, NULL, NULL },
};
