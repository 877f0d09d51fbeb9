/* SPDX-License-Identifier: MIT */
/* Settings for parked jobs. */
#pragma once

#include "base/options.h"

extern const struct option_row park_rows[];
