/* SPDX-License-Identifier: MIT */
/* retention.c obeys them, also when they change while mgpud runs. */
#include "controller/settings_keep.h"

#include "base/parse.h"
#include "controller/controller.h"

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

const struct option_row keep_rows[] = {
    { 0, "keep-jobs", "TIME", "remove jobs that ended longer ago from the store; 0: keep them", set_keep_jobs,
        "365d" },
    { 0, "keep-max", "N", "keep so many jobs that ended at most; 0: any number", set_keep_max, "0" },
    { 0, NULL, NULL, NULL, NULL },
};
