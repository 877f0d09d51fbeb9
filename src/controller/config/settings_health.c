/* SPDX-License-Identifier: MIT */
#include "controller/config/settings_health.h"

#include <stddef.h>

#include "base/option_values.h"
#include "controller/config/options.h"

const struct option_row health_rows[] = {
    { 0, "gpu-recover", "SPAN", "time a failed GPU must be healthy before it returns",
        OPTION_INNER(duration, struct controller_options, health.recover_ms), .preset = "10m" },
    { 0, "gpu-unclean", "SPAN", "time a GPU can be unclean before it counts as failed",
        OPTION_INNER(duration, struct controller_options, health.unclean_ms), .preset = "10m" },
    { 0, NULL, NULL, NULL, NULL },
};
