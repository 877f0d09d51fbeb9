/* SPDX-License-Identifier: MIT */
/* What the store keeps, and how much of it one user may use. Used by retention.c and core/concerns/quota.c,
 * also after changes while mgpud is running. */
#include "controller/config/settings_keep.h"

#include <string.h>

#include "base/parse.h"
#include "controller/config/options.h"

static int set_keep_jobs(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    return parse_duration(value, "--keep-jobs", &options->keep_jobs_ms, err);
}

static int set_keep_max(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    int64_t number;
    int r = parse_integer(value, "--keep-max", 0, INT64_MAX, &number, err);
    if (r == 0)
        options->keep_max = (uint64_t)number;
    return r;
}

static int set_user_queued(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    int64_t number;
    int r = parse_integer(value, "--user-max-queued", 0, INT32_MAX, &number, err);
    if (r == 0)
        options->user_max_queued = (uint64_t)number;
    return r;
}

static int set_user_stored(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    if (strcmp(value, "0") != 0)
        return parse_size(value, "--user-max-stored", &options->user_max_stored, err);
    options->user_max_stored = 0;
    return 0;
}

const struct option_row keep_rows[] = {
    { 0, "keep-jobs", "TIME", "remove ended jobs from the store after this time; 0: never", set_keep_jobs,
        "365d" },
    { 0, "keep-max", "N", "maximum number of ended jobs to keep; 0: unlimited", set_keep_max, "0" },
    { 0, "user-max-queued", "N", "maximum waiting and running jobs per user; 0: unlimited", set_user_queued,
        "100000" },
    { 0, "user-max-stored", "SIZE", "maximum size of requests a user can store per day; 0: unlimited",
        set_user_stored, "2G" },
    { 0, NULL, NULL, NULL, NULL },
};
