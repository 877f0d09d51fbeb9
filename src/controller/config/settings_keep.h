/* SPDX-License-Identifier: MIT */
/* The settings about how long jobs that ended are kept. */
#pragma once

#include "base/options.h"

extern const struct option_row keep_rows[];
