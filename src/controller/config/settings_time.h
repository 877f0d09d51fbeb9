/* SPDX-License-Identifier: MIT */
/* The settings about how long jobs may run. */
#pragma once

#include "base/options.h"

extern const struct option_row time_rows[];
