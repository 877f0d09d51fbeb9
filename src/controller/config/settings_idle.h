/* SPDX-License-Identifier: MIT */
/* The settings about jobs that do not use their GPUs. */
#pragma once

#include "base/options.h"

/* The table's target begins with a pointer to the options. */
extern const struct option_row idle_rows[];
