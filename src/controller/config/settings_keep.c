/* SPDX-License-Identifier: MIT */
/* What the store keeps, and how much of it one user may use. Used by retention.c and core/concerns/quota.c,
 * also after changes while mgpud is running. */
#include "controller/config/settings_keep.h"

#include <string.h>

#include "base/option_values.h"
#include "controller/config/options.h"

const struct option_row keep_rows[] = {
    { 0, "keep-jobs", "TIME", "remove ended jobs from the store after this time; 0: never",
        OPTION_INNER(duration, struct controller_options, keep_jobs_ms), .preset = "365d" },
    { 0, "keep-max", "N", "maximum number of ended jobs to keep; 0: unlimited",
        OPTION_INNER(integer, struct controller_options, keep_max), OPTION_RANGE(0, INT64_MAX),
        .preset = "0" },
    { 0, "user-max-queued", "N", "maximum waiting and running jobs per user; 0: unlimited",
        OPTION_INNER(integer, struct controller_options, user_max_queued), OPTION_RANGE(0, INT32_MAX),
        .preset = "100000" },
    { 0, "user-max-stored", "SIZE", "maximum size of requests a user can store per day; 0: unlimited",
        OPTION_INNER(size, struct controller_options, user_max_stored), OPTION_ZERO("0"), .preset = "2G" },
    { 0, NULL, NULL, NULL, NULL },
};
