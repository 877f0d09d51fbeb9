/* SPDX-License-Identifier: MIT */
/* Settings for how long ended jobs are kept. */
#pragma once

#include "base/options.h"

extern const struct option_row keep_rows[];
