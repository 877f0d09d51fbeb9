/* SPDX-License-Identifier: MIT */
/* Settings about GPUs that fail: a table of mgpud's options and of keys of the configuration file. */
#pragma once

#include "base/options.h"

extern const struct option_row health_rows[];
