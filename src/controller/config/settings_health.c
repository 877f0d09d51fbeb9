/* SPDX-License-Identifier: MIT */
#include "controller/config/settings_health.h"

#include <stddef.h>

#include "base/parse.h"
#include "controller/config/options.h"

static struct health_settings *settings_of(void *target)
{
    return &(*(struct controller_options **)target)->health;
}

static int set_recover(void *target, const char *value, struct error *err)
{
    return parse_duration(value, "--gpu-recover", &settings_of(target)->recover_ms, err);
}

static int set_unclean(void *target, const char *value, struct error *err)
{
    return parse_duration(value, "--gpu-unclean", &settings_of(target)->unclean_ms, err);
}

const struct option_row health_rows[] = {
    { 0, "gpu-recover", "SPAN", "time a failed GPU must be healthy before it returns", set_recover, "10m" },
    { 0, "gpu-unclean", "SPAN", "time a GPU can be unclean before it counts as failed", set_unclean, "10m" },
    { 0, NULL, NULL, NULL, NULL },
};
