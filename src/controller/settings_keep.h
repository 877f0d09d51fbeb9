/* SPDX-License-Identifier: MIT */
/* The settings about how long jobs that ended are kept. */
#pragma once

#include "base/options.h"

struct controller_options;

extern const struct option_row keep_rows[];

void keep_settings_init(struct controller_options *options);
