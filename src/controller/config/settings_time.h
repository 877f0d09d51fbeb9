/* SPDX-License-Identifier: MIT */
/* Settings for time limits. */
#pragma once

#include "base/options.h"

extern const struct option_row time_rows[];
