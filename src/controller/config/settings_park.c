/* SPDX-License-Identifier: MIT */
/* Parked jobs keep the contents of their GPU memory in the memory of their node (core/park.c). */
#include "controller/config/settings_park.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "controller/config/options.h"

#define TIMEOUT_MIN_MS 1000

static int set_max(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    options->park.bytes_max = 0;
    return strcmp(value, "auto") == 0 ? 0 : parse_size(value, "--park-max", &options->park.bytes_max, err);
}

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

const struct option_row park_rows[] = {
    { 0, "park-max", "auto|SIZE",
        "GPU memory that parked jobs keep in the memory of a node; auto: half of it", set_max, "auto" },
    { 0, "park-timeout", "TIME", "time to save the GPU memory of a job that is parked", set_timeout, "2m" },
    { 0, NULL, NULL, NULL, NULL },
};
